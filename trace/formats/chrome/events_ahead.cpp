#include "trace/formats/chrome/events_ahead.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "trace/formats/chrome/chrome_recovery.h"
#include "trace/formats/io/json_window.h"

namespace trainprof {
namespace {

// Where the last event begins, as far as it looks so; nullptr: nowhere but at the begin.
const char* LastEvent(const char* begin, const char* end) {
  for (const char* p = end - std::min<ptrdiff_t>(kLookAhead, end - begin); p > begin; --p) {
    if (*p != '{' || !LooksLikeEvent(p)) continue;
    const auto before = [&](const char* q) {
      while (q > begin && static_cast<unsigned char>(q[-1]) <= ' ') --q;
      return q;
    };
    const char* const comma = before(p);
    if (comma == begin || comma[-1] != ',') continue;
    const char* const event_end = before(comma - 1);
    if (event_end > begin && event_end[-1] == '}') return p;
  }
  return nullptr;
}

}  // namespace

struct EventsAhead::Chunk {
  std::unique_ptr<char[]> bytes;
  size_t size = 0;
  uint64_t offset = 0;
  // What was made of it, by the parser of that number.
  size_t parser = 0;
  bool is_done = false;
  bool is_regular = false;
  struct One {
    ChromeFields fields;
    uint32_t begin;  // of its bytes
    uint32_t end;
    // Of the lists below: up to where they are its own.
    uint32_t args_end;
    uint32_t notes_end;
    uint32_t texts_end;
  };
  std::vector<One> events;
  std::vector<Arg> args;
  std::vector<Note> notes;
  // Texts that the parser met for the first time, one after another, and where each ends.
  std::string texts;
  std::vector<uint32_t> text_end;

  void Clear() {
    is_done = is_regular = false;
    events.clear();
    args.clear();
    notes.clear();
    texts.clear();
    text_end.clear();
  }
};

struct EventsAhead::Parser {
  explicit Parser(size_t of) : number(of), parser(scratch), told(scratch.trace().strings.size()) {
    for (uint32_t id = 0; id < told; ++id)
      first_texts.emplace_back(scratch.trace().Text(StringId{id}));
  }

  const size_t number;
  TraceBuilder scratch;
  ChromeEventParser parser;
  ChromeEvent event;
  size_t told;  // strings that chunks have named
  // The caller's: ids by those of `scratch`. The first are what every parser knows from the begin.
  std::vector<std::string> first_texts;
  std::vector<StringId> ids;

  void Parse(Chunk& chunk);

 private:
  void Append(Chunk& chunk, const char* begin, const char* end);
};

void EventsAhead::Parser::Append(Chunk& chunk, const char* begin, const char* end) {
  chunk.args.insert(chunk.args.end(), event.args.begin(), event.args.end());
  parser.AppendNotes(chunk.notes);
  const StringTable& strings = scratch.trace().strings;
  for (; told < strings.size(); ++told) {
    chunk.texts += strings.View(StringId{static_cast<uint32_t>(told)});
    chunk.text_end.push_back(static_cast<uint32_t>(chunk.texts.size()));
  }
  const char* const bytes = chunk.bytes.get();
  chunk.events.push_back(
      {event, static_cast<uint32_t>(begin - bytes), static_cast<uint32_t>(end - bytes),
       static_cast<uint32_t>(chunk.args.size()), static_cast<uint32_t>(chunk.notes.size()),
       static_cast<uint32_t>(chunk.text_end.size())});
}

void EventsAhead::Parser::Parse(Chunk& chunk) {
  chunk.parser = number;
  const char* const end = chunk.bytes.get() + chunk.size;
  bool after_event = false;
  for (const char* p = json::SkipSpace(chunk.bytes.get()); p < end; p = json::SkipSpace(p)) {
    if (*p == ',' && after_event) {
      after_event = false;
      ++p;
      continue;
    }
    if (*p != '{' || after_event) return;
    const char* const begin = p;
    if (parser.Parse(p, end, event) != json::Scan::kOk) return;
    Append(chunk, begin, p);
    after_event = true;
  }
  chunk.is_regular = !after_event && !chunk.events.empty();
}

EventsAhead::EventsAhead(ByteSource& source, TraceBuilder& builder, size_t threads,
                         size_t chunk_bytes)
    : source_(source), builder_(builder), chunk_bytes_(chunk_bytes) {
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    parsers_.push_back(std::make_unique<Parser>(i));
  }
  helpers_.Start(parsers_.size() - 1, [this] { Work(); });
}

EventsAhead::~EventsAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  helpers_.Join();
}

size_t EventsAhead::Read(char* out, size_t capacity) {
  if (carry_at_ == carry_.size()) return source_.Read(out, capacity);
  const size_t count = carry_.copy(out, capacity, carry_at_);
  carry_at_ += count;
  return count;
}

// What was read last, to be read again.
void EventsAhead::Unread(std::string_view bytes) {
  if (carry_at_ < carry_.size()) {
    carry_at_ -= bytes.size();  // it came from there
    return;
  }
  carry_ = bytes;
  carry_at_ = 0;
}

// Null at the end of the source, and where no event seems to end in a whole chunk.
std::unique_ptr<EventsAhead::Chunk> EventsAhead::NextChunk() {
  std::unique_ptr<Chunk> chunk;
  if (spare_.empty()) {
    chunk = std::make_unique<Chunk>();
    chunk->bytes = std::make_unique_for_overwrite<char[]>(chunk_bytes_ + JsonWindow::kPadding);
  } else {
    chunk = std::move(spare_.back());
    spare_.pop_back();
    chunk->Clear();
  }
  char* const bytes = chunk->bytes.get();
  size_t size = 0;
  while (size < chunk_bytes_) {
    const size_t got = Read(bytes + size, chunk_bytes_ - size);
    if (got == 0) break;
    size += got;
  }
  std::memset(bytes + size, 0, JsonWindow::kPadding);
  // The list's end is not looked for: it is in what the source gives last.
  const char* const cut = size < chunk_bytes_ ? nullptr : LastEvent(bytes, bytes + size);
  if (cut == nullptr) {
    Unread({bytes, size});
    return nullptr;
  }
  chunk->size = static_cast<size_t>(cut - bytes);
  Unread({cut, size - chunk->size});
  chunk->offset = carry_offset_;
  carry_offset_ += chunk->size;
  std::memset(bytes + chunk->size, 0, JsonWindow::kPadding);
  return chunk;
}

// Some chunks ahead of who folds.
void EventsAhead::Queue() {
  const size_t most = 2 * parsers_.size() + 1;
  while (!source_done_ && in_flight_.size() < most) {
    std::unique_ptr<Chunk> chunk = NextChunk();
    if (chunk == nullptr) {
      source_done_ = true;
      return;
    }
    const std::lock_guard lock(mutex_);
    to_parse_.push_back(chunk.get());
    in_flight_.push_back(std::move(chunk));
    changed_.notify_one();
  }
}

// The next one, outside the lock. Without memory it does not count.
bool EventsAhead::ParseOne(Parser& parser, std::unique_lock<std::mutex>& lock) {
  if (to_parse_.empty()) return false;
  Chunk& chunk = *to_parse_.front();
  to_parse_.pop_front();
  lock.unlock();
  try {
    parser.Parse(chunk);
  } catch (const std::bad_alloc&) {
    chunk.is_regular = false;
  }
  lock.lock();
  chunk.is_done = true;
  changed_.notify_all();
  return true;
}

void EventsAhead::Work() {
  std::unique_lock lock(mutex_);
  Parser& parser = *parsers_[next_parser_++];
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !to_parse_.empty(); });
    if (stop_) return;
    ParseOne(parser, lock);
  }
}

// Strings are interned before the event that has them first: in the order in which one parser meets
// them.
void EventsAhead::Fold(Chunk& chunk, const Visit& visit) {
  Parser& by = *parsers_[chunk.parser];
  for (; by.ids.size() < by.first_texts.size();) {
    by.ids.push_back(builder_.Intern(by.first_texts[by.ids.size()]));
  }
  const auto map = [&](StringId& id) { id = by.ids[Index(id)]; };
  uint32_t text = 0;
  uint32_t text_begin = 0;
  uint32_t arg = 0;
  uint32_t note = 0;
  for (const Chunk::One& one : chunk.events) {
    for (; text < one.texts_end; ++text) {
      const uint32_t text_end = chunk.text_end[text];
      by.ids.push_back(
          builder_.Intern(std::string_view(chunk.texts).substr(text_begin, text_end - text_begin)));
      text_begin = text_end;
    }
    static_cast<ChromeFields&>(event_) = one.fields;
    event_.EachText(map);
    event_.args.assign(chunk.args.begin() + arg, chunk.args.begin() + one.args_end);
    arg = one.args_end;
    for (Arg& each : event_.args) {
      map(each.key);
      map(each.value.text);
    }
    const std::span<const Note> notes =
        std::span<const Note>(chunk.notes).subspan(note, one.notes_end - note);
    note = one.notes_end;
    visit({event_,
           {chunk.bytes.get() + one.begin, one.end - one.begin},
           chunk.offset + one.begin,
           notes});
  }
}

EventsAhead::Rest EventsAhead::WhatIsLeft() {
  Rest rest;
  rest.offset = in_flight_.empty() ? carry_offset_ : in_flight_.front()->offset;
  for (const std::unique_ptr<Chunk>& chunk : in_flight_) {
    rest.bytes.append(chunk->bytes.get(), chunk->size);
  }
  rest.bytes.append(carry_, carry_at_);
  return rest;
}

EventsAhead::Rest EventsAhead::Run(std::string head, uint64_t offset, const Visit& visit,
                                   const std::function<bool(uint64_t, uint64_t)>& go_on) {
  carry_ = std::move(head);
  carry_offset_ = offset;
  bool is_irregular = false;
  while (true) {
    Queue();
    if (in_flight_.empty() ||
        !go_on(in_flight_.front()->offset, carry_offset_ + carry_.size() - carry_at_)) {
      break;
    }
    Chunk& front = *in_flight_.front();
    {
      std::unique_lock lock(mutex_);
      while (!front.is_done) {
        if (!ParseOne(*parsers_[0], lock)) {
          changed_.wait(lock, [&] { return front.is_done || !to_parse_.empty(); });
        }
      }
      is_irregular = !front.is_regular;
    }
    if (is_irregular) break;
    Fold(front, visit);
    spare_.push_back(std::move(in_flight_.front()));
    in_flight_.pop_front();
  }
  {
    std::unique_lock lock(mutex_);
    to_parse_.clear();
    stop_ = true;
  }
  changed_.notify_all();
  helpers_.Join();
  Rest rest = WhatIsLeft();
  rest.is_irregular = is_irregular;
  return rest;
}

}  // namespace trainprof
