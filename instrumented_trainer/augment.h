// Turns a decoded picture into what the network sees: random crop, resize, flip, colour jitter,
// normalisation.
#pragma once

#include <cstdint>

#include "instrumented_trainer/shapes.h"

namespace trainer {

// Writes 3 x out_size x out_size floats (channel, row, column) of mean about 0 and deviation
// about 1. The same image, size and seed give the same values.
void Augment(const Image& image, int out_size, uint64_t seed, float* out);

}  // namespace trainer
