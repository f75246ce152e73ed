// A large recording for benchmarks, sealed, in a temporary folder: of each rank 40 threads that run
// operators, each of which launches a kernel on the thread's own stream.
#pragma once

#include <fmt/format.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <string>

#include "tests/trace/recording/rows_of.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof {

// As the tables will stand; or as the collector writes them: one writer for all, in the order of
// time, so that calls and kernels alternate between threads and streams.
enum class RowOrder { kAsInTables, kAsCollected };

class LargeRecording {
 public:
  // `events` are shared by the ranks.
  LargeRecording(size_t events, RowOrder order, uint32_t ranks = 1)
      : operators_(events / kEventsPerOperator / kThreads / ranks) {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "trainprof-benchmark-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    (void)recording::CreateRun(path(), recording::RunDescription{}).ok();
    for (uint32_t rank = 0; rank < ranks; ++rank) WriteRank(rank, order);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::hours(1);
    (void)recording::SealRecording(path(), {}, deadline).ok();
  }
  LargeRecording(const LargeRecording&) = delete;
  LargeRecording& operator=(const LargeRecording&) = delete;
  ~LargeRecording() { std::filesystem::remove_all(folder_); }

  std::filesystem::path path() const { return folder_ / "run"; }
  uint64_t Bytes() const {
    uint64_t bytes = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path())) {
      if (entry.is_regular_file()) bytes += entry.file_size();
    }
    return bytes;
  }

 private:
  static constexpr uint32_t kThreads = 40;
  // What a thread does: a range, the call in it, the kernel.
  static constexpr size_t kEventsPerOperator = 3;
  // Each stream runs so many kernels in turn.
  static constexpr uint32_t kKernels = 8;

  static int64_t TimeOf(size_t op) { return static_cast<int64_t>(op) * 12'000 + 1000; }

  void WriteRank(uint32_t rank, RowOrder order) const {
    testing::SegmentWriter writer(path() / fmt::format("rank-{:05}", rank));
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      writer.BeginWriter(thread, 100 + thread);
      WriteRanges(writer);
      for (size_t i = 0; order == RowOrder::kAsInTables && i < operators_; ++i) {
        WriteRows(writer, thread, i);
      }
    }
    if (order == RowOrder::kAsCollected) {
      writer.BeginWriter(kThreads, 99, "collector");
      for (size_t i = 0; i < operators_; ++i) {
        for (uint32_t thread = 0; thread < kThreads; ++thread) WriteRows(writer, thread, i);
      }
    }
    writer.Finish();
  }

  void WriteRanges(testing::SegmentWriter& writer) const {
    for (size_t i = 0; i < operators_; ++i) {
      writer.ShortPush("aten::mm", static_cast<uint64_t>(TimeOf(i)));
      writer.ShortPop(static_cast<uint64_t>(TimeOf(i) + 9000));
    }
  }

  void WriteRows(testing::SegmentWriter& writer, uint32_t thread, size_t i) const {
    const int64_t at = TimeOf(i);
    const auto correlation = static_cast<uint32_t>(thread * operators_ + i + 1);
    const uint32_t call_name = writer.String("cudaLaunchKernel");
    writer.Row(testing::CallOf(at + 2000, at + 5000, correlation, call_name, 100 + thread));
    const auto length = static_cast<int64_t>(4000 + i * 7919 % 6000);
    recording::DeviceRow kernel = testing::RowOf(recording::DeviceRowType::kKernel, at + 6000,
                                                 at + 6000 + length, correlation);
    const auto number = static_cast<uint32_t>(i % kKernels);
    kernel.name = writer.String(fmt::format("gemm_kernel_{}", number));
    kernel.stream = 7 + thread;
    kernel.kernel.grid[0] = 100 + number;
    writer.Row(kernel);
  }

  const size_t operators_;  // of each thread
  std::filesystem::path folder_;
};

}  // namespace trainprof
