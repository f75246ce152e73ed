// Writes what one of the library's own threads records: rows of fixed size (rows.h) in chunks of
// their own, and the strings, facts and other records that go with them. One thread at a time.
#pragma once

#include <cstdint>

#include "collectors/core/full_chunks.h"
#include "collectors/core/string_cache.h"
#include "trace/recording/wire/format.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::collectors {

class RowWriter {
 public:
  // A new writer of this process, or nullptr when memory runs out. Never freed.
  static RowWriter* Make();
  // One that goes on where the writer `number` of a dead process ended: its next chunk is
  // `sequence`, its next string `last_string_id` + 1.
  static RowWriter* Continue(uint32_t number, uint32_t sequence, uint32_t last_string_id);

  // Unmaps its chunks; nothing may be written afterwards.
  void Close();

  uint32_t number() const { return number_; }

  // The id of a text, defined on first use. 0 for the empty text, and when nothing can be written.
  uint32_t String(const char* text) { return IdOf(strings_.Find(text)); }

  // False, and counted, when the recording is full or has failed.
  bool Write(const recording::DeviceRow& row);
  bool Write(const recording::CallRow& row);

  // A record with `word_count` words behind its head, at least one.
  bool Record(recording::RecordType type, uint32_t domain, uint32_t id, const void* words,
              uint32_t word_count);
  void Fact(const char* key, const char* value);
  // A gap begins or ends at these ticks.
  void Gap(bool begins, recording::GapReason reason, uint64_t ticks);
  void Clock();

 private:
  struct Output {
    recording::ChunkHeader* chunk;
    char* cursor;
    char* end;
    uint32_t next_bytes;  // preferred size of the next chunk
  };

  static RowWriter* Allocate();
  uint32_t IdOf(CachedString* entry);
  template <class Row>
  bool WriteRow(Output& output, recording::ChunkKind kind, const Row& row);
  bool Room(Output& output, recording::ChunkKind kind, uint32_t row_bytes, uint32_t bytes);
  static void Commit(Output& output, uint32_t bytes);

  Output records_;
  Output device_;
  Output calls_;
  uint32_t number_;
  uint32_t sequence_;
  FullChunks full_;
  bool thinned_;  // why the last Room() failed
  StringCache strings_;
};

}  // namespace trainprof::collectors
