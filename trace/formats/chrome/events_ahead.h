// A list of events, parsed ahead on several threads and handed out in order: what comes out, down to
// the numbers of strings, is what one parser makes of it.
//
// The bytes are cut where an event seems to begin. A stretch counts if its parser, which began at
// its first byte, came out behind its last event's comma: then the next stretch began where the list
// goes on, too. From the first one that does not count all bytes go back to who reads one event after
// the other, so that what is damaged or unusual is understood in one place.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
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

  // Reads on from `head`, whose first byte, an event's, stands at `offset`. `go_on` is asked now and
  // then, with the offsets of what comes next and of what was read last; it may throw. Once.
  Rest Run(std::string head, uint64_t offset, const Visit& visit,
           const std::function<bool(uint64_t, uint64_t)>& go_on);

 private:
  struct Chunk;
  // Who parses, and how the caller knows what strings it has met.
  struct Parser;

  size_t Read(char* out, size_t capacity);
  void Unread(std::string_view bytes);
  std::unique_ptr<Chunk> NextChunk();
  void Queue();
  void Work();
  bool ParseOne(Parser& parser, std::unique_lock<std::mutex>& lock);
  void Fold(Chunk& chunk, const Visit& visit);
  Rest WhatIsLeft();

  ByteSource& source_;
  TraceBuilder& builder_;
  const size_t chunk_bytes_;
  std::string carry_;  // from carry_at_ on: read, and of no chunk yet
  size_t carry_at_ = 0;
  uint64_t carry_offset_ = 0;
  bool source_done_ = false;
  ChromeEvent event_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::deque<Chunk*> to_parse_;
  std::deque<std::unique_ptr<Chunk>> in_flight_;  // in order; the caller's alone
  std::vector<std::unique_ptr<Chunk>> spare_;
  std::vector<std::unique_ptr<Parser>> parsers_;  // the first is the caller's
  size_t next_parser_ = 1;
  Helpers helpers_;
};

}  // namespace trainprof
