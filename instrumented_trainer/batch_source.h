// Batches without end: LibTorch's DataLoader over the data set, epoch after epoch.
#pragma once

#include <torch/types.h>

#include <memory>

#include "instrumented_trainer/image_store.h"

namespace trainer {

struct Batch {
  torch::Tensor images;  // float, batch x 3 x size x size, on the CPU
  torch::Tensor labels;  // int64, batch
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Waits until the next batch is there. Throws what a worker threw, for instance an unreadable
  // file.
  virtual Batch Next() = 0;
};

struct BatchOptions {
  int64_t batch = 0;
  int64_t workers = 0;  // 0: decoding happens inside Next
  int image_size = 0;
  uint64_t seed = 0;
  bool pin_memory = false;
};

// The batches depend on the options and the seed of torch's generator, not on the number of
// workers.
std::unique_ptr<BatchSource> MakeBatchSource(ImageStore store, const BatchOptions& options);

}  // namespace trainer
