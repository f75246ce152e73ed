// The loop: wait for data, copy, forward, backward, optimizer, each in its NVTX range inside
// `step`.
#include "instrumented_trainer/training.h"

#include <torch/cuda.h>
#include <torch/optim/adamw.h>
#include <torch/version.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "instrumented_trainer/autocast.h"
#include "instrumented_trainer/batch_source.h"
#include "instrumented_trainer/models.h"
#include "instrumented_trainer/nvtx_ranges.h"
#include "instrumented_trainer/shapes.h"

namespace trainer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kInputNoise = 0.02;  // deviation of the noise added to normalised images

double Milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

std::shared_ptr<Classifier> MakeModel(const Options& options) {
  const int64_t width = EffectiveWidth(options);
  if (options.model == Model::kResnet) return MakeResnet(width, kClassCount);
  return MakeTransformer(width, options.image_size, kPatchSize, kClassCount);
}

// One run's state, and a step of it.
class Trainer {
 public:
  Trainer(const Options& options, ImageStore store)
      : options_(options),
        device_(options.device),
        model_(MakeModel(options)),
        batches_(MakeBatchSource(
            std::move(store), {options.batch, options.workers, static_cast<int>(options.image_size),
                               options.seed, options.habits.pin_memory})) {
    model_->to(device_);
    model_->train();
    optimizer_ = std::make_unique<torch::optim::AdamW>(
        model_->parameters(), torch::optim::AdamWOptions(options.learning_rate));
    class_weights_ = torch::ones({kClassCount}, device_);
  }

  // Returns what the step waited for data.
  Clock::duration Step(int64_t index) {
    const Range step("step", static_cast<uint64_t>(index));
    const Clock::time_point begin = Clock::now();
    Batch batch = WaitForBatch();
    const Clock::duration waited = Clock::now() - begin;
    CopyToDevice(batch);
    torch::Tensor loss = Forward(batch);
    Backward(loss);
    {
      const Range range("optimizer");
      optimizer_->step();
      optimizer_->zero_grad();
    }
    Record(loss, index);
    return waited;
  }

  // Waits until the device has done all that was asked of it.
  void Synchronize() const {
    if (device_.is_cuda()) torch::cuda::synchronize();
  }

  int64_t ParameterCount() const {
    int64_t count = 0;
    for (const torch::Tensor& parameter : model_->parameters()) count += parameter.numel();
    return count;
  }

  double LastLoss() const { return last_loss_; }

 private:
  Batch WaitForBatch() {
    const Range range("data_wait");
    return batches_->Next();
  }

  void CopyToDevice(Batch& batch) {
    const Range range("h2d_copy");
    // Only a copy from page-locked memory can be asynchronous.
    const bool non_blocking = options_.habits.pin_memory;
    batch.images = batch.images.to(device_, non_blocking);
    batch.labels = batch.labels.to(device_, non_blocking);
  }

  torch::Tensor Forward(const Batch& batch) {
    const Range range("forward");
    const torch::Device made_on = options_.habits.cpu_tensors ? torch::Device("cpu") : device_;
    const torch::Tensor noise =
        (torch::randn(batch.images.sizes(), made_on) * kInputNoise).to(device_);
    const torch::Tensor weights =
        options_.habits.cpu_tensors ? torch::ones({kClassCount}).to(device_) : class_weights_;
    torch::Tensor scores;
    {
      const Autocast autocast(options_.amp_bf16, device_.type());
      scores = model_->forward(batch.images + noise);
    }
    return torch::nn::functional::cross_entropy(
        scores.to(torch::kFloat32), batch.labels,
        torch::nn::functional::CrossEntropyFuncOptions().weight(weights));
  }

  void Backward(torch::Tensor& loss) {
    const Range range("backward");
    loss.backward(/*gradient=*/{}, /*retain_graph=*/options_.habits.retain_graph);
  }

  // Reads the loss where a log line or the habit asks for it: on a GPU that waits for the device.
  void Record(const torch::Tensor& loss, int64_t index) {
    const auto due = [index](int64_t every) { return every > 0 && (index + 1) % every == 0; };
    const bool last = index + 1 == options_.steps;
    if (index == 0 || last || due(options_.log_every) || due(options_.habits.item_every)) {
      const Range range("loss_item");
      last_loss_ = loss.item<double>();
    }
    if (options_.habits.keep_graph) kept_losses_.push_back(loss);
  }

  const Options& options_;
  torch::Device device_;
  std::shared_ptr<Classifier> model_;
  std::unique_ptr<BatchSource> batches_;
  std::unique_ptr<torch::optim::AdamW> optimizer_;
  torch::Tensor class_weights_;
  std::vector<torch::Tensor> kept_losses_;
  double last_loss_ = 0;
};

void PrintHeader(const Options& options, const Trainer& trainer) {
  std::printf("model %s, width %lld, %lld parameters; device %s; LibTorch %s; NVTX ranges %s\n",
              ModelName(options.model), static_cast<long long>(EffectiveWidth(options)),
              static_cast<long long>(trainer.ParameterCount()), options.device.c_str(),
              TORCH_VERSION, NvtxCompiledIn() ? "on" : "not built in (NVTX headers were absent)");
  std::printf("batch %lld, image %lld px, workers %lld, operator threads %lld, seed %llu\n",
              static_cast<long long>(options.batch), static_cast<long long>(options.image_size),
              static_cast<long long>(options.workers), static_cast<long long>(options.threads),
              static_cast<unsigned long long>(options.seed));
  std::fflush(stdout);
}

// Means over the steps after warm-up. The last measured step ends when the device is done, so
// queued work is not missed.
void PrintSummary(const Options& options, int64_t measured, Clock::duration total,
                  Clock::duration waited) {
  const double step_ms = Milliseconds(total) / static_cast<double>(measured);
  const double wait_ms = Milliseconds(waited) / static_cast<double>(measured);
  std::printf(
      "mean of %lld steps after warm-up: %.2f ms/step, of it %.2f ms (%.1f %%) data wait; "
      "%.1f images/s\n",
      static_cast<long long>(measured), step_ms, wait_ms, 100 * wait_ms / step_ms,
      static_cast<double>(options.batch) * 1000 / step_ms);
}

void RunTraining(const Options& options, ImageStore store) {
  torch::manual_seed(options.seed);
  torch::set_num_threads(static_cast<int>(options.threads));
  NameThisThread("training");
  Trainer trainer(options, std::move(store));
  PrintHeader(options, trainer);

  const int64_t warmup = std::min(options.warmup, options.steps - 1);
  Clock::time_point measured_from = Clock::now();
  Clock::time_point logged_at = measured_from;
  int64_t logged_step = 0;
  Clock::duration waited{};
  for (int64_t i = 0; i < options.steps; ++i) {
    if (i == warmup) {
      trainer.Synchronize();
      measured_from = Clock::now();
      waited = {};
    }
    waited += trainer.Step(i);
    const int64_t done = i + 1;
    if (done == 1 || done % options.log_every == 0 || done == options.steps) {
      const Clock::time_point now = Clock::now();
      std::printf("step %lld loss %.4f %.1f ms/step\n", static_cast<long long>(done),
                  trainer.LastLoss(),
                  Milliseconds(now - logged_at) / static_cast<double>(done - logged_step));
      std::fflush(stdout);
      logged_at = now;
      logged_step = done;
    }
  }
  trainer.Synchronize();
  PrintSummary(options, options.steps - warmup, Clock::now() - measured_from, waited);
}

}  // namespace

void RequireDevice(const Options& options) {
  if (options.device != "cuda") return;
  if (!torch::cuda::is_available()) {
    throw std::runtime_error(
        "--device cuda: LibTorch " TORCH_VERSION
        " finds no CUDA device. It needs a CUDA build of LibTorch, an NVIDIA GPU and its driver; "
        "--device cpu works without");
  }
}

// LibTorch's errors carry a C++ stack in their text, which says nothing to a user.
void Train(const Options& options, ImageStore store) {
  try {
    RunTraining(options, std::move(store));
  } catch (const c10::Error& error) {
    throw std::runtime_error(error.what_without_backtrace());
  }
}

}  // namespace trainer
