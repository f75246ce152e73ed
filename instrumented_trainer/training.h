// The training run itself.
#pragma once

#include "instrumented_trainer/image_store.h"
#include "instrumented_trainer/options.h"

namespace trainer {

// Throws std::runtime_error where the device is not there; it is called before any data is drawn.
void RequireDevice(const Options& options);

// Trains and prints its progress to stdout. Throws std::exception on what stops it.
void Train(const Options& options, ImageStore store);

}  // namespace trainer
