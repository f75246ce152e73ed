#include "collectors/core/row_writer.h"

#include <string.h>

#include "collectors/core/process_state.h"
#include "collectors/core/segment_file.h"
#include "collectors/core/system.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

using recording::ChunkHeader;
using recording::ChunkKind;
using recording::RecordType;

namespace {

// A launch makes 136 bytes of rows: a chunk lasts for some 8,000 launches.
constexpr uint32_t kMostChunkBytes = 1024 * 1024;

}  // namespace

RowWriter* RowWriter::Allocate() {
  void* string_memory = nullptr;
  auto* writer = AllocateWriter<RowWriter>(&string_memory);
  if (writer == nullptr) return nullptr;
  writer->strings_.Init(string_memory);
  for (Output* output : {&writer->records_, &writer->device_, &writer->calls_}) {
    output->next_bytes = kFirstChunkBytes;
  }
  return writer;
}

RowWriter* RowWriter::Make() {
  RowWriter* writer = Allocate();
  if (writer != nullptr) writer->number_ = g_runtime.state->next_writer.fetch_add(1);
  return writer;
}

RowWriter* RowWriter::Continue(uint32_t number, uint32_t sequence, uint32_t last_string_id) {
  RowWriter* writer = Allocate();
  if (writer == nullptr) return nullptr;
  writer->number_ = number;
  writer->sequence_ = sequence;
  writer->strings_.StartAfter(last_string_id);
  return writer;
}

void RowWriter::Close() {
  for (Output* output : {&records_, &device_, &calls_}) {
    if (output->chunk != nullptr) UnmapChunk(output->chunk);
    output->chunk = nullptr;
  }
  full_.Clear();
}

bool RowWriter::Room(Output& output, ChunkKind kind, uint32_t row_bytes, uint32_t bytes) {
  if (static_cast<size_t>(output.end - output.cursor) >= bytes) [[likely]] {
    return true;
  }
  const ChunkRequest request = {static_cast<uint32_t>(bytes + sizeof(ChunkHeader)),
                                output.next_bytes,
                                kind == ChunkKind::kRecords,
                                number_,
                                sequence_,
                                kind,
                                static_cast<uint16_t>(row_bytes)};
  ChunkHeader* chunk = full_.Take(request);
  if (chunk == nullptr) {
    const ClaimResult result = ClaimChunk(request, &chunk);
    thinned_ = result == ClaimResult::kThinned;
    if (result != ClaimResult::kClaimed) return false;
  }
  if (output.chunk != nullptr) full_.Add(output.chunk);
  ++sequence_;
  output.next_bytes = NextChunkBytes(output.next_bytes, kMostChunkBytes);
  output.chunk = chunk;
  output.cursor = reinterpret_cast<char*>(chunk + 1);
  output.end = reinterpret_cast<char*>(chunk) + chunk->size_bytes;
  return true;
}

void RowWriter::Commit(Output& output, uint32_t bytes) {
  output.cursor += bytes;
  const char* payload = reinterpret_cast<const char*>(output.chunk + 1);
  output.chunk->committed.store(static_cast<uint64_t>(output.cursor - payload),
                                std::memory_order_release);
}

template <class Row>
bool RowWriter::WriteRow(Output& output, ChunkKind kind, const Row& row) {
  if (!Room(output, kind, sizeof row, sizeof row)) [[unlikely]] {
    CountDrop(output.chunk, thinned_);
    return false;
  }
  memcpy(output.cursor, &row, sizeof row);
  Commit(output, sizeof row);
  return true;
}

bool RowWriter::Write(const recording::DeviceRow& row) {
  return WriteRow(device_, ChunkKind::kDeviceRows, row);
}

bool RowWriter::Write(const recording::CallRow& row) {
  return WriteRow(calls_, ChunkKind::kCallRows, row);
}

bool RowWriter::Record(RecordType type, uint32_t domain, uint32_t id, const void* words,
                       uint32_t word_count) {
  const uint32_t bytes = (word_count + 1) * 8;
  if (!Room(records_, ChunkKind::kRecords, 0, bytes)) return false;
  const uint64_t head = recording::PackHead(type, word_count + 1, domain, id);
  memcpy(records_.cursor, &head, 8);
  memcpy(records_.cursor + 8, words, word_count * 8);
  Commit(records_, bytes);
  return true;
}

uint32_t RowWriter::IdOf(CachedString* entry) {
  if (entry == nullptr) return 0;
  if (entry->id != 0 || (entry->length == 0 && !entry->truncated)) return entry->id;
  const uint32_t bytes = entry->RecordWords() * 8;
  if (!Room(records_, ChunkKind::kRecords, 0, bytes)) return 0;
  entry->id = strings_.NextId();
  PutString(*entry, reinterpret_cast<uint64_t*>(records_.cursor));
  Commit(records_, bytes);
  return entry->id;
}

void RowWriter::Fact(const char* key, const char* value) {
  const uint32_t key_id = String(key);
  const uint64_t value_id = String(value);
  if (key_id != 0) Record(RecordType::kFact, 0, key_id, &value_id, 1);
}

void RowWriter::Gap(bool begins, recording::GapReason reason, uint64_t ticks) {
  Record(begins ? RecordType::kGapBegin : RecordType::kGapEnd, static_cast<uint32_t>(reason), 0,
         &ticks, 1);
}

void RowWriter::Clock() {
  const recording::ClockSample sample = recording::SampleClockTriple(g_runtime.clock);
  Record(RecordType::kClock, 0, 0, &sample, sizeof sample / 8);
}

}  // namespace trainprof::collectors
