// Draws the training images: one shape a picture, the class is the shape.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace trainer {

// Rows top down, three bytes a pixel: red, green, blue.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> rgb;
};

inline constexpr std::array<const char*, 8> kShapeNames = {"circle", "square", "triangle", "star",
                                                           "ring",   "cross",  "crescent", "bars"};
inline constexpr int kClassCount = static_cast<int>(kShapeNames.size());

// A size x size picture of shape number `label` in a random colour, place, scale and rotation, on a
// noisy two-colour background. The same arguments give the same pixels.
Image DrawShape(int label, int size, uint64_t seed);

// A good 64-bit mix of a seed and an index (splitmix64): neighbouring inputs give unrelated
// outputs.
uint64_t MixSeed(uint64_t seed, uint64_t index);

}  // namespace trainer
