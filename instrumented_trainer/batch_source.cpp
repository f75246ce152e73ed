// Decoding and augmentation as a LibTorch dataset, and the DataLoader around it.
#include "instrumented_trainer/batch_source.h"

#include <torch/data.h>

#include <atomic>
#include <optional>
#include <utility>

#include "instrumented_trainer/augment.h"
#include "instrumented_trainer/jpeg.h"
#include "instrumented_trainer/nvtx_ranges.h"

namespace trainer {
namespace {

namespace data = torch::data;

// Names a loader thread once. The training thread, which decodes when there are no workers, has its
// name already.
void NameWorkerOnce(bool has_workers) {
  thread_local bool named = false;
  if (named || !has_workers) return;
  NameThisThread("loader worker");
  named = true;
}

// A batch is written straight into its final, possibly page-locked, memory: no stacking afterwards.
class ShapeDataset : public data::datasets::BatchDataset<ShapeDataset, data::Example<>> {
 public:
  ShapeDataset(std::shared_ptr<const ImageStore> store, BatchOptions options,
               std::shared_ptr<const std::atomic<uint64_t>> epoch)
      : store_(std::move(store)), options_(options), epoch_(std::move(epoch)) {}

  data::Example<> get_batch(torch::ArrayRef<size_t> indices) override {
    NameWorkerOnce(options_.workers > 0);
    const auto count = static_cast<int64_t>(indices.size());
    const int64_t side = options_.image_size;
    torch::Tensor images = torch::empty({count, 3, side, side},
                                        torch::TensorOptions().pinned_memory(options_.pin_memory));
    torch::Tensor labels = torch::empty(
        {count}, torch::TensorOptions(torch::kInt64).pinned_memory(options_.pin_memory));
    float* image = images.data_ptr<float>();
    auto* label = labels.data_ptr<int64_t>();
    const uint64_t epoch_seed = MixSeed(options_.seed, epoch_->load());
    for (const size_t index : indices) {
      const Range range("decode");
      ReadJpeg(SamplePath(*store_, index), picture_);
      Augment(picture_, options_.image_size, MixSeed(epoch_seed, index), image);
      image += 3 * side * side;
      *label++ = store_->labels[index];
    }
    return {images, labels};
  }

  torch::optional<size_t> size() const override { return store_->labels.size(); }

 private:
  // The DataLoader gives each worker a copy of the dataset: the store is shared, the buffer is not.
  std::shared_ptr<const ImageStore> store_;
  BatchOptions options_;
  std::shared_ptr<const std::atomic<uint64_t>> epoch_;
  Image picture_;
};

class LoaderSource : public BatchSource {
 public:
  LoaderSource(std::shared_ptr<const ImageStore> store, const BatchOptions& options)
      : epoch_(std::make_shared<std::atomic<uint64_t>>(0)),
        loader_(data::make_data_loader(
            ShapeDataset(store, options, epoch_),
            data::samplers::RandomSampler(static_cast<int64_t>(store->labels.size())),
            data::DataLoaderOptions()
                .batch_size(static_cast<size_t>(options.batch))
                .workers(static_cast<size_t>(options.workers))
                .drop_last(true))) {}

  Batch Next() override {
    if (!position_) {
      position_ = loader_->begin();
    } else if (++*position_ == loader_->end()) {
      // All workers are idle between epochs, so none sees the number change within one.
      ++*epoch_;
      position_ = loader_->begin();
    }
    const data::Example<>& example = **position_;
    return {example.data, example.target};
  }

 private:
  using Loader = data::StatelessDataLoader<ShapeDataset, data::samplers::RandomSampler>;
  std::shared_ptr<std::atomic<uint64_t>> epoch_;
  std::unique_ptr<Loader> loader_;
  std::optional<data::Iterator<data::Example<>>> position_;
};

}  // namespace

std::unique_ptr<BatchSource> MakeBatchSource(ImageStore store, const BatchOptions& options) {
  return std::make_unique<LoaderSource>(std::make_shared<const ImageStore>(std::move(store)),
                                        options);
}

}  // namespace trainer
