// Augmentation on the CPU, in one pass over the crop: each output pixel is the mean of its box of
// input pixels, then jittered and normalised.
#include "instrumented_trainer/augment.h"

#include <algorithm>
#include <random>

namespace trainer {
namespace {

constexpr float kSmallestCrop = 0.75F;  // of the side: a shape reaches over at most 0.68 of it
constexpr float kJitter = 0.25F;  // brightness, contrast and saturation vary by this, either way
constexpr float kMean = 0.5F;     // of the drawn pictures, whose colours are uniform
constexpr float kDeviation = 0.25F;

struct Draw {
  int left, top, side;
  bool flip;
  float brightness, contrast, saturation;
};

Draw RandomDraw(const Image& image, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<float> unit(0, 1);
  const int shorter = std::min(image.width, image.height);
  const float scale = kSmallestCrop + (1 - kSmallestCrop) * unit(random);
  Draw draw = {};
  draw.side = std::max(1, static_cast<int>(static_cast<float>(shorter) * scale));
  draw.left = static_cast<int>(unit(random) * static_cast<float>(image.width - draw.side));
  draw.top = static_cast<int>(unit(random) * static_cast<float>(image.height - draw.side));
  draw.flip = unit(random) < 0.5F;
  const auto jitter = [&] { return 1 + kJitter * (2 * unit(random) - 1); };
  draw.brightness = jitter();
  draw.contrast = jitter();
  draw.saturation = jitter();
  return draw;
}

// Mean colour, in 0..1, of the pixels [x0, x1) x [y0, y1).
std::array<float, 3> BoxMean(const Image& image, int x0, int x1, int y0, int y1) {
  std::array<uint32_t, 3> sum = {};
  for (int y = y0; y < y1; ++y) {
    const uint8_t* pixel = image.rgb.data() + (static_cast<size_t>(y) * image.width + x0) * 3;
    for (int x = x0; x < x1; ++x, pixel += 3) {
      sum[0] += pixel[0];
      sum[1] += pixel[1];
      sum[2] += pixel[2];
    }
  }
  const float scale = 1.0F / (255.0F * static_cast<float>((x1 - x0) * (y1 - y0)));
  return {static_cast<float>(sum[0]) * scale, static_cast<float>(sum[1]) * scale,
          static_cast<float>(sum[2]) * scale};
}

float Jitter(float value, float grey, const Draw& draw) {
  const float saturated = grey + (value - grey) * draw.saturation;
  const float contrasted = kMean + (saturated - kMean) * draw.contrast;
  return std::clamp(contrasted * draw.brightness, 0.0F, 1.0F);
}

}  // namespace

void Augment(const Image& image, int out_size, uint64_t seed, float* out) {
  const Draw draw = RandomDraw(image, seed);
  const size_t plane = static_cast<size_t>(out_size) * out_size;
  // First input column or row of output position i; an enlarged crop repeats pixels.
  const auto edge = [&](int i) { return static_cast<int>(int64_t{i} * draw.side / out_size); };
  for (int y = 0; y < out_size; ++y) {
    const int y0 = draw.top + edge(y);
    const int y1 = std::max(y0 + 1, draw.top + edge(y + 1));
    for (int x = 0; x < out_size; ++x) {
      const int column = draw.flip ? out_size - 1 - x : x;
      const int x0 = draw.left + edge(column);
      const int x1 = std::max(x0 + 1, draw.left + edge(column + 1));
      const std::array<float, 3> colour = BoxMean(image, x0, x1, y0, y1);
      const float grey = (colour[0] + colour[1] + colour[2]) / 3;
      float* pixel = out + static_cast<size_t>(y) * out_size + x;
      for (size_t c = 0; c < 3; ++c) {
        pixel[c * plane] = (Jitter(colour[c], grey, draw) - kMean) / kDeviation;
      }
    }
  }
}

}  // namespace trainer
