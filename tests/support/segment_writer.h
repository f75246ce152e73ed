// Writes segments by the letter of FORMAT.md, without the collector: for tests of the reader alone.
// The clock is made up: one tick is one ns, and tick 0 is kOriginNs of CLOCK_MONOTONIC.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "trace/recording/wire/format.h"
#include "trace/recording/wire/payload_types.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::testing {

// The limit of what may take all its time.
inline std::chrono::steady_clock::time_point InAnHour() {
  return std::chrono::steady_clock::now() + std::chrono::hours(1);
}

class SegmentWriter {
 public:
  static constexpr int64_t kOriginNs = 5'000'000'000;
  static constexpr int64_t kRealOffsetNs = 1'700'000'000'000'000'000;
  static constexpr int kDeadPid = 0x3FFFFFF0;  // beyond any kernel's pid_max

  // Into `folder`, which is made. Name: <pid>-1.tps.
  explicit SegmentWriter(std::filesystem::path folder, int pid = kDeadPid);

  recording::SegmentHeader& header() { return header_; }  // changes count until Finish()
  std::filesystem::path path() const { return path_; }

  // Records go to this writer, and this thread, from here on. Begins a chunk.
  void BeginWriter(uint32_t writer, int64_t tid, const char* name = "thread");
  void NewChunk(uint32_t skip_numbers = 0);
  void Thread(uint64_t ticks, int64_t tid, const char* name);
  void Push(const std::string& name, uint64_t ticks, uint32_t domain = 0,
            std::vector<uint64_t> attributes = {});
  void Pop(uint64_t ticks, uint32_t domain = 0);
  void ShortPush(const std::string& name, uint64_t ticks);
  void ShortPop(uint64_t ticks, uint32_t domain = 0);
  void Start(const std::string& name, uint64_t ticks, uint64_t id);
  void End(uint64_t ticks, uint64_t id);
  // `stack`: a line a frame. The ticks are its end's.
  void Range(const std::string& name, uint64_t begin, uint64_t end, const std::string& stack = "");
  void Mark(const std::string& name, uint64_t ticks, std::vector<uint64_t> attributes = {},
            uint32_t domain = 0);
  void Domain(uint32_t domain, const std::string& name);
  void Category(uint32_t domain, uint32_t category, const std::string& name);
  void ThreadName(int64_t tid, const std::string& name);
  void Gap(uint64_t begin, uint64_t end,  // 0 as an end: none
           recording::GapReason reason = recording::GapReason::kWindow);
  void Fact(const std::string& key, const std::string& value);
  void Device(const recording::DeviceFacts& facts, const std::string& name);
  void Stream(uint32_t context, uint32_t stream, int64_t priority);
  void Module(const recording::ModuleFacts& facts, const std::string& path);
  // Return addresses, innermost first; the stack's id must be new to the writer.
  void Stack(uint32_t id, const std::vector<uint64_t>& frames);
  // `script`: the interpreter's own stack, a line a frame.
  void NameStack(const std::string& name, uint32_t stack, const std::string& script = {});
  void CallStack(uint32_t id, uint32_t correlation, recording::CallDomain domain,
                 const std::string& script = "");
  void Schema(uint64_t number, const recording::PayloadSchema& schema, uint32_t domain = 0);
  void Enum(uint64_t number, const recording::PayloadEnum& type, uint32_t domain = 0);
  void Payload(uint64_t schema, std::string_view bytes);
  void Row(const recording::DeviceRow& row);
  void Row(const recording::CallRow& row);
  // A row of another size or kind, in the writer's chunk of such rows.
  void RawRow(recording::ChunkKind kind, uint16_t row_bytes, const void* row, size_t bytes);
  void Raw(std::vector<uint64_t> words);
  uint32_t String(const std::string& text);  // its id, defined if need be
  recording::ChunkHeader& chunk() { return records_->header; }

  void Finish();  // writes the file

  static recording::ClockSample Sample(uint64_t ticks);

 private:
  struct Chunk {
    recording::ChunkHeader header{};
    std::vector<uint64_t> words;
  };
  static uint32_t SizeOf(const Chunk& chunk);
  void Named(recording::RecordType type, const std::string& name, uint64_t ticks, uint32_t domain,
             std::vector<uint64_t> rest);
  bool MustBeLong() const;
  Chunk& AddChunk(recording::ChunkKind kind);
  std::vector<uint64_t>& words() { return records_->words; }

  std::filesystem::path path_;
  recording::SegmentHeader header_{};
  std::deque<Chunk> chunks_;
  Chunk* records_ = nullptr;  // the writer's present chunk of records
  uint32_t writer_ = 0;
  std::map<uint32_t, uint32_t> next_sequence_;
  std::map<std::pair<uint32_t, std::string>, uint32_t> ids_;
  uint64_t last_ticks_ = 0;
};

}  // namespace trainprof::testing
