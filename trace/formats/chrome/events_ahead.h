// A list of events, parsed ahead on several threads and handed out in order: what comes out, down to
// the numbers of strings, is what one parser makes of it. Each thread reads what it parses itself,
// one at a time, into memory of its own: what another core has written last takes several times as
// long to write, most where the two share no cache.
//
// The bytes are cut where an event seems to begin. A stretch counts if its parser, which began at
// its first byte, came out behind its last event's comma: then the next stretch began where the list
// goes on, too. From the first one that does not count all bytes go back to who reads one event after
// the other, so that what is damaged or unusual is understood in one place.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/base/parallel.h"
#include "trace/formats/chrome/chrome_event_parser.h"
#include "trace/formats/io/byte_source.h"

namespace trainprof {

class EventsAhead {
 public:
  static constexpr size_t kChunkBytes = 512 << 10;  // fits a core's own cache
  // On at most so many threads, the caller's among them. More than four gain nothing: a third of the
  // work is the caller's alone.
  EventsAhead(ByteSource& source, TraceBuilder& builder, size_t threads,
              size_t chunk_bytes = kChunkBytes);
  EventsAhead(const EventsAhead&) = delete;
  EventsAhead& operator=(const EventsAhead&) = delete;
  ~EventsAhead();

  struct Parsed {
    const ChromeEvent& event;
    std::string_view raw;
    uint64_t offset;
    std::span<const Note> notes;  // what had to be repaired
  };
  using Visit = std::function<void(const Parsed&)>;
  // What was read and not visited; `offset` is its first byte's.
  struct Rest {
    std::string bytes;
    uint64_t offset = 0;
    bool is_irregular = false;  // else the source has ended, or was told to stop
  };

  struct Reached {
    uint64_t next;        // offset of what is visited next
    uint64_t read_to;     // offset of the first byte that was not read
    uint64_t file_bytes;  // the source's file_bytes_read() then
  };

  // Reads on from `head`, whose first byte, an event's, stands at `offset`. `go_on` is asked now and
  // then, and may throw; neither it nor `visit` may ask the source, of which another thread may be reading. Once.
  Rest Run(std::string head, uint64_t offset, const Visit& visit,
           const std::function<bool(const Reached&)>& go_on);

 private:
  struct Chunk;
  // Who parses, and how the caller knows what strings it has met.
  struct Parser;

  size_t Read(char* out, size_t capacity);
  void Unread(std::string_view bytes);
  bool Fill(Chunk& chunk);
  bool TakeOne(Parser& parser, std::unique_lock<std::mutex>& lock);
  void Work();
  void Fold(Chunk& chunk, const Visit& visit);
  Rest WhatIsLeft();

  ByteSource& source_;
  TraceBuilder& builder_;
  const size_t chunk_bytes_;
  const size_t most_in_flight_;
  // Who reads has these.
  std::string carry_;  // from carry_at_ on: read, and of no chunk yet
  size_t carry_at_ = 0;
  uint64_t carry_offset_ = 0;
  ChromeEvent event_;  // that is visited

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  bool is_reading_ = false;
  bool source_done_ = false;
  uint64_t read_to_ = 0;
  uint64_t file_bytes_ = 0;
  std::exception_ptr failure_;                     // of who read
  std::vector<std::unique_ptr<Chunk>> in_flight_;  // in order; the caller takes them out
  std::vector<std::unique_ptr<Parser>> parsers_;   // the first is the caller's
  size_t next_parser_ = 1;
  Helpers helpers_;
};

}  // namespace trainprof
