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
  explicit Chunk(size_t most_bytes)
      : bytes(std::make_unique_for_overwrite<char[]>(most_bytes + JsonWindow::kPadding)) {}

  const std::unique_ptr<char[]> bytes;
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
  // An argument in half the room.
  struct PackedArg {
    PackedArg(const Arg& arg) : key(arg.key), type(arg.value.type) {
      if (type == ArgValue::Type::kInt) {
        integer = arg.value.integer;
      } else if (type == ArgValue::Type::kDouble) {
        real = arg.value.real;
      } else {
        text = arg.value.text;
      }
    }
    // Into an argument of before, member by member: a temporary would have to be copied.
    void UnpackInto(Arg& arg) const {
      arg.key = key;
      arg.value.type = type;
      arg.value.text =
          type == ArgValue::Type::kInt || type == ArgValue::Type::kDouble ? kEmptyString : text;
      arg.value.integer = type == ArgValue::Type::kInt ? integer : 0;
      arg.value.real = type == ArgValue::Type::kDouble ? real : 0;
    }

    StringId key;
    ArgValue::Type type;
    union {
      StringId text;
      int64_t integer;
      double real;
    };
  };
  std::vector<One> events;
  std::vector<PackedArg> args;
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
  // Chunks that it has parsed, to be used again: what another core has written last comes from there.
  std::vector<std::unique_ptr<Chunk>> spare;

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
    : source_(source),
      builder_(builder),
      chunk_bytes_(chunk_bytes),
      most_in_flight_(2 * std::max<size_t>(threads, 1) + 1) {
  for (size_t i = 0; i < std::max<size_t>(threads, 1); ++i) {
    parsers_.push_back(std::make_unique<Parser>(i));
  }
  in_flight_.reserve(most_in_flight_);
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

// False at the end of the source, and where no event seems to end in a whole chunk.
bool EventsAhead::Fill(Chunk& chunk) {
  char* const bytes = chunk.bytes.get();
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
    return false;
  }
  chunk.size = static_cast<size_t>(cut - bytes);
  Unread({cut, size - chunk.size});
  chunk.offset = carry_offset_;
  carry_offset_ += chunk.size;
  std::memset(bytes + chunk.size, 0, JsonWindow::kPadding);
  return true;
}

// Reads the next chunk, once nobody else is reading, and parses it, both outside the lock. False: there is none to be
// read now. Without the memory to parse it does not count.
bool EventsAhead::TakeOne(Parser& parser, std::unique_lock<std::mutex>& lock) {
  if (stop_ || source_done_ || is_reading_ || in_flight_.size() >= most_in_flight_) return false;
  is_reading_ = true;
  std::unique_ptr<Chunk> taken;
  if (!parser.spare.empty()) {
    taken = std::move(parser.spare.back());
    parser.spare.pop_back();
  }
  lock.unlock();
  bool is_filled = false;
  std::exception_ptr failure;
  try {
    if (taken == nullptr) taken = std::make_unique<Chunk>(chunk_bytes_);
    taken->Clear();
    is_filled = Fill(*taken);
  } catch (...) {
    failure = std::current_exception();
  }
  const uint64_t read_to = carry_offset_ + carry_.size() - carry_at_;
  const uint64_t file_bytes = source_.file_bytes_read();
  lock.lock();
  is_reading_ = false;
  read_to_ = read_to;
  file_bytes_ = file_bytes;
  changed_.notify_all();
  if (!is_filled) {
    source_done_ = true;
    failure_ = failure;
    return true;
  }
  Chunk& chunk = *taken;
  in_flight_.push_back(std::move(taken));
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
  while (!stop_ && !source_done_) {
    if (!TakeOne(parser, lock)) changed_.wait(lock);
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
    event_.args.resize(one.args_end - arg);
    for (Arg& each : event_.args) {
      chunk.args[arg++].UnpackInto(each);
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
                                   const std::function<bool(const Reached&)>& go_on) {
  carry_ = std::move(head);
  carry_offset_ = offset;
  helpers_.Start(parsers_.size() - 1, [this] { Work(); });
  bool is_irregular = false;
  std::unique_lock lock(mutex_);
  const auto wait_until = [&](const auto& holds) {
    while (!holds()) {
      if (!TakeOne(*parsers_[0], lock)) changed_.wait(lock);
    }
  };
  while (true) {
    wait_until([&] { return !in_flight_.empty() || source_done_; });
    if (in_flight_.empty()) break;
    Chunk& front = *in_flight_.front();
    const Reached reached = {front.offset, read_to_, file_bytes_};
    lock.unlock();
    const bool goes_on = go_on(reached);
    lock.lock();
    if (!goes_on) break;
    wait_until([&] { return front.is_done; });
    is_irregular = !front.is_regular;
    if (is_irregular) break;
    lock.unlock();
    Fold(front, visit);
    lock.lock();
    parsers_[front.parser]->spare.push_back(std::move(in_flight_.front()));
    in_flight_.erase(in_flight_.begin());
    changed_.notify_all();
  }
  stop_ = true;
  lock.unlock();
  changed_.notify_all();
  helpers_.Join();
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  Rest rest = WhatIsLeft();
  rest.is_irregular = is_irregular;
  return rest;
}

}  // namespace trainprof
