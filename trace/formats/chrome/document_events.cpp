// The list of events in a document.
#include "trace/formats/chrome/chrome_recovery.h"
#include "trace/formats/chrome/document_reader.h"
#include "trace/formats/chrome/events_ahead.h"

namespace trainprof {

using json::Scan;

// The elements of a list of events, up to its ']'.
bool DocumentReader::ReadEvents() {
  found_events_ = true;
  window_.Consume(window_.at() + 1);
  after_event_ = false;
  recovered_ = false;
  while (true) {
    const char next = Peek();
    notes_.At(progress_.events, window_.OffsetOf(window_.at()));
    if (next == '{') {
      if (!after_event_ && IsWorthReadingAhead()) {
        if (!ReadAhead()) return false;
        continue;
      }
      if (after_event_ && !recovered_) notes_.Add(Note::kMissingComma);
      after_event_ = true;
      recovered_ = false;
      if (!ReadEvent()) return false;
    } else if (next == ',') {
      if (!after_event_ && !recovered_) notes_.Add(Note::kExtraComma);
      after_event_ = false;
      window_.Consume(window_.at() + 1);
    } else if (next == ']') {
      if (!after_event_ && !recovered_ && progress_.events > 0) {
        notes_.Add(Note::kExtraComma);
      }
      window_.Consume(window_.at() + 1);
      return true;
    } else if (next == 0) {
      // Chrome's format allows a bare list to stay open. It then looks like one that was cut.
      return Stop(Note::kTruncatedInput, "the list of events has no end");
    } else {
      after_event_ = true;
      if (!SkipElement()) return false;
    }
  }
}

// A file of which much is left.
bool DocumentReader::IsWorthReadingAhead() const {
  constexpr uint64_t kWorthThreads = 1 << 20;  // bytes on disk
  return threads_ > 1 && window_.OffsetOf(window_.at()) >= ahead_from_ &&
         source_.file_bytes_read() + kWorthThreads < progress_.file_bytes;
}

// As far as the events are regular; what is not, the caller reads, and then comes back: later each
// time, so that a file which is never regular costs no more than twice.
bool DocumentReader::ReadAhead() {
  EventsAhead ahead(source_, builder_, threads_);
  const auto visit = [&](const EventsAhead::Parsed& parsed) {
    notes_.At(progress_.events, parsed.offset);
    for (const Note note : parsed.notes) notes_.Add(note);
    if (parsed.event.phase == 0 && !parsed.event.has_time) ++no_events_;
    tables_.Add(parsed.event, parsed.raw);
    ++progress_.events;
    recovered_ = false;
  };
  const uint64_t begin = window_.OffsetOf(window_.at());
  EventsAhead::Rest rest =
      ahead.Run(window_.TakeRest(), begin, visit, [&](const EventsAhead::Reached& reached) {
        window_.GiveBack({}, reached.next);
        read_to_ = reached.read_to;
        file_bytes_ahead_ = reached.file_bytes;
        return Tick();
      });
  file_bytes_ahead_.reset();
  window_.GiveBack(std::move(rest.bytes), rest.offset);
  if (!failure_.empty()) return false;
  ahead_from_ = rest.is_irregular ? rest.offset + ahead_pause_ : UINT64_MAX;
  ahead_pause_ *= 2;
  return true;
}

bool DocumentReader::ReadEvent() {
  while (true) {
    const char* p = window_.at();
    const Scan scan = parser_.Parse(p, window_.end(), event_);
    if (scan == Scan::kOk) {
      parser_.Commit(notes_);
      if (event_.phase == 0 && !event_.has_time) ++no_events_;
      tables_.Add(event_, {window_.at(), static_cast<size_t>(p - window_.at())});
      ++progress_.events;
      window_.Consume(p);
      return true;
    }
    if (scan == Scan::kBad) return Recover(Note::kUnparsableEvent, p);
    if (More()) continue;
    if (window_.full()) return Recover(Note::kOversizedEvent, window_.end() - 1);
    return Stop(Note::kTruncatedInput, "the last event is cut off");
  }
}

// An element of the list that is no object.
bool DocumentReader::SkipElement() {
  while (true) {
    const char* p = window_.at();
    json::Repairs repairs;
    const Scan scan = json::SkipValue(p, window_.end(), repairs);
    if (scan == Scan::kOk) {
      notes_.Add(Note::kNotAnEvent);
      window_.Consume(p);
      return true;
    }
    if (scan == Scan::kBad) return Recover(Note::kUnparsableEvent, p);
    if (More()) continue;
    if (window_.full()) return Recover(Note::kOversizedEvent, window_.end() - 1);
    return Stop(Note::kTruncatedInput, "the last element is cut off");
  }
}

// After something that is no JSON, or too large: goes on at what looks like the next event, or the
// end of the list. Scans forward only, so that broken input costs no more than its length.
bool DocumentReader::Recover(Note note, const char* failed_at) {
  notes_.Add(note);
  window_.Consume(failed_at);
  recovered_ = true;  // the commas in between are not looked at
  char before = 0;    // the last byte that is no white space; 0: not known
  while (true) {
    const char* p = window_.at();
    for (; p + kLookAhead <= window_.end() || (window_.at_end() && p < window_.end()); ++p) {
      const bool event_may_start = before == ',' || before == '}' || before == '[' || before == 0;
      const bool found = (*p == '{' && event_may_start && LooksLikeEvent(p)) ||
                         (*p == ']' && LooksLikeEndOfList(p));
      if (found) {
        window_.Consume(p);
        return true;
      }
      if (static_cast<unsigned char>(*p) > ' ') before = *p;
    }
    window_.Consume(p);
    if (!More()) return Stop(Note::kTruncatedInput, "no further event after one that is no JSON");
  }
}

}  // namespace trainprof
