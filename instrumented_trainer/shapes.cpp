// Shapes as functions of the plane: negative inside, about a distance in units of the shape's
// radius.
#include "instrumented_trainer/shapes.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace trainer {
namespace {

constexpr float kPi = std::numbers::pi_v<float>;
constexpr int kNoiseAmplitude = 24;  // grey levels, either way
// Dark backgrounds and bright shapes, so that a minute of training on a CPU already learns
// something.
constexpr int kBrightestBackground = 110;
constexpr int kDarkestShape = 140;

// Radius, at this angle, of the regular polygon inscribed in the unit circle.
float PolygonRadius(int corners, float angle) {
  const float sector = 2 * kPi / static_cast<float>(corners);
  const float within = angle - sector * std::floor(angle / sector) - sector / 2;
  return std::cos(sector / 2) / std::cos(within);
}

// Radius, at this angle, of a star whose points lie on the unit circle.
float StarRadius(int points, float inner, float angle) {
  const float half = kPi / static_cast<float>(points);
  float within = std::fmod(std::fabs(angle), 2 * half);
  if (within > half) within = 2 * half - within;
  // The edge runs from (1, 0) to the inner corner; intersect it with the ray at angle `within`.
  const float corner_x = inner * std::cos(half);
  const float corner_y = inner * std::sin(half);
  return corner_y / (std::sin(within) * (1 - corner_x) + std::cos(within) * corner_y);
}

float Box(float u, float v, float half_width, float half_height) {
  return std::max(std::fabs(u) - half_width, std::fabs(v) - half_height);
}

float Signed(int label, float u, float v) {
  const float radius = std::hypot(u, v);
  const float angle = std::atan2(v, u);
  switch (label) {
    case 0:
      return radius - 1;
    case 1:
      return radius - PolygonRadius(4, angle);
    case 2:
      return radius - PolygonRadius(3, angle);
    case 3:
      return radius - StarRadius(5, 0.42F, angle);
    case 4:
      return std::fabs(radius - 0.75F) - 0.25F;
    case 5:
      return std::min(Box(u, v, 0.28F, 1), Box(u, v, 1, 0.28F));
    case 6:
      return std::max(radius - 1, 0.85F - std::hypot(u - 0.55F, v));
    default:
      return std::min(Box(u, v - 0.6F, 1, 0.27F), Box(u, v + 0.6F, 1, 0.27F));
  }
}

using Colour = std::array<int, 3>;

Colour RandomColour(int darkest, int brightest, std::mt19937_64& random) {
  std::uniform_int_distribution<int> level(darkest, brightest);
  return {level(random), level(random), level(random)};
}

// Where the shape lies, in pixels, and how the plane is turned.
struct Placement {
  float center_x, center_y, radius, cosine, sine;
};

Placement RandomPlacement(int size, std::mt19937_64& random) {
  std::uniform_real_distribution<float> unit(0, 1);
  const auto side = static_cast<float>(size);
  const float radius = side * (0.24F + 0.16F * unit(random));
  const float room = side - 2 * radius;
  const float x = radius + room * (0.2F + 0.6F * unit(random));
  const float y = radius + room * (0.2F + 0.6F * unit(random));
  const float turn = 2 * kPi * unit(random);
  return {x, y, radius, std::cos(turn), std::sin(turn)};
}

}  // namespace

uint64_t MixSeed(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

Image DrawShape(int label, int size, uint64_t seed) {
  std::mt19937_64 random(seed);
  const Colour top = RandomColour(0, kBrightestBackground, random);
  const Colour bottom = RandomColour(0, kBrightestBackground, random);
  const Colour fill = RandomColour(kDarkestShape, 255, random);
  const Placement at = RandomPlacement(size, random);

  Image image{size, size, std::vector<uint8_t>(static_cast<size_t>(size) * size * 3)};
  uint64_t noise = random();
  uint8_t* out = image.rgb.data();
  for (int y = 0; y < size; ++y) {
    const float down = static_cast<float>(y) / static_cast<float>(size);
    for (int x = 0; x < size; ++x) {
      const float dx = (static_cast<float>(x) - at.center_x) / at.radius;
      const float dy = (static_cast<float>(y) - at.center_y) / at.radius;
      const float distance =
          Signed(label, at.cosine * dx + at.sine * dy, at.cosine * dy - at.sine * dx);
      const float cover = std::clamp(0.5F - distance * at.radius, 0.0F, 1.0F);
      noise = noise * 6364136223846793005ULL + 1442695040888963407ULL;
      const int grain = static_cast<int>(noise >> 58) * kNoiseAmplitude / 32 - kNoiseAmplitude;
      for (size_t c = 0; c < 3; ++c) {
        const float back =
            static_cast<float>(top[c]) * (1 - down) + static_cast<float>(bottom[c]) * down;
        const float value = back * (1 - cover) + static_cast<float>(fill[c]) * cover;
        *out++ = static_cast<uint8_t>(std::clamp(static_cast<int>(value) + grain, 0, 255));
      }
    }
  }
  return image;
}

}  // namespace trainer
