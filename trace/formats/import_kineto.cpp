// Chrome trace JSON as torch.profiler (kineto) and others write it: an object with "traceEvents",
// or a bare list of events. Plain or gzip. One pass, in bounded memory beside the tables.
#include <fmt/format.h>
#include <sys/stat.h>

#include "trace/formats/byte_source.h"
#include "trace/formats/chrome_event_parser.h"
#include "trace/formats/chrome_tables.h"
#include "trace/formats/importer.h"
#include "trace/formats/json_window.h"

namespace trainprof {
namespace {

using json::Scan;
using json::SkipSpace;

class DocumentReader {
 public:
  DocumentReader(const std::string& path, const ImportOptions& options, ByteSource& source)
      : path_(path),
        options_(options),
        source_(source),
        window_(source),
        parser_(builder_),
        tables_(builder_, notes_) {
    struct stat info {};
    if (stat(path.c_str(), &info) == 0) progress_.file_bytes = static_cast<uint64_t>(info.st_size);
  }

  Result<Trace> Read();

 private:
  // False: stop; either the end of the data, or an error in failure_.
  bool ReadTopLevel();
  bool ReadMember();
  bool ReadEvents();
  bool ReadEvent();
  bool Recover(const char* failed_at);
  bool SkipToNextEvent();
  bool KeepElement();

  char Peek();
  bool More();
  bool Stop(Note note, std::string_view what);
  Error Fail(std::string_view message) const;
  bool Tick();
  std::string Place(const char* p) const {
    return fmt::format("byte {}, after {} events", window_.OffsetOf(p), progress_.events);
  }
  Result<Trace> Finish();

  const std::string& path_;
  const ImportOptions& options_;
  ByteSource& source_;
  JsonWindow window_;
  TraceBuilder builder_;
  ImportNotes notes_;
  ChromeEventParser parser_;
  ChromeTables tables_;
  ChromeEvent event_;
  ImportProgress progress_;
  std::vector<std::string> member_names_;
  bool found_events_ = false;
  bool cancelled_ = false;
  bool truncated_ = false;
};

// Reads on while keeping what is not consumed; false at the end of the data.
bool DocumentReader::More() {
  if (!Tick()) return false;
  return window_.Refill();
}

// Reports progress; false when the user cancelled.
bool DocumentReader::Tick() {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
    cancelled_ = true;
    return false;
  }
  if (options_.progress) {
    progress_.file_bytes_read = source_.file_bytes_read();
    progress_.parsed_bytes = window_.OffsetOf(window_.at());
    options_.progress(progress_);
  }
  return true;
}

// The next byte that is not white space, without consuming it; 0 at the end of the data. A zero
// byte in the data itself reads as the end of the data too: no JSON goes on after it.
char DocumentReader::Peek() {
  while (true) {
    window_.Consume(SkipSpace(window_.at()));
    if (window_.at() < window_.end()) return *window_.at();
    if (!More()) return 0;
  }
}

bool DocumentReader::Stop(Note note, std::string_view what) {
  if (cancelled_) return false;
  truncated_ = true;
  const std::string damage = source_.damage();
  notes_.AddWithDetail(note, fmt::format("{} at {}{}{}", what, Place(window_.at()),
                                         damage.empty() ? "" : ": ", damage));
  return false;
}

Error DocumentReader::Fail(std::string_view message) const {
  return Error{fmt::format("{}: {}", path_, message)};
}

bool DocumentReader::ReadTopLevel() {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  Peek();
  const std::string_view head(window_.at(), static_cast<size_t>(window_.end() - window_.at()));
  if (head.starts_with(kByteOrderMark)) window_.Consume(window_.at() + kByteOrderMark.size());
  const char first = Peek();
  if (first == '[') {
    found_events_ = true;
    return ReadEvents();
  }
  if (first != '{') return true;  // reported by Read()
  window_.Consume(window_.at() + 1);
  while (true) {
    const char next = Peek();
    if (next == '}') {
      window_.Consume(window_.at() + 1);
      return true;
    }
    if (next == ',') {
      window_.Consume(window_.at() + 1);
      continue;
    }
    if (next != '"') return Stop(Note::kTruncatedInput, "no further member could be read");
    if (!ReadMember()) return false;
  }
}

// "key": value. The events are read one by one, other values whole.
bool DocumentReader::ReadMember() {
  std::string key;
  json::Repairs repairs;
  while (true) {
    const char* p = window_.at() + 1;
    const Scan scan = json::DecodeString(p, window_.end(), key, repairs);
    if (scan == Scan::kOk) {
      window_.Consume(p);
      break;
    }
    if (scan == Scan::kBad || !More())
      return Stop(Note::kTruncatedInput, "a member's name ends early");
  }
  if (Peek() != ':') return Stop(Note::kTruncatedInput, "no ':' after a member's name");
  window_.Consume(window_.at() + 1);
  const char first = Peek();
  if (key == "traceEvents" && first == '[') {
    if (found_events_)
      notes_.AddWithDetail(Note::kDuplicateKey, "traceEvents occurs twice; both are read");
    found_events_ = true;
    return ReadEvents();
  }
  while (true) {
    const char* p = window_.at();
    json::Repairs value_repairs;
    const Scan scan = json::SkipValue(p, window_.end(), value_repairs);
    // A number or word at the end of the window may go on.
    if (scan == Scan::kOk && (p < window_.end() || window_.at_end())) {
      const std::string_view raw(window_.at(), static_cast<size_t>(p - window_.at()));
      notes_.At(progress_.events, window_.OffsetOf(window_.at()));
      if (value_repairs.bare_literal) notes_.Add(Note::kBareLiteral);
      if (value_repairs.bad_escape) notes_.Add(Note::kBadEscape);
      if (value_repairs.invalid_utf8) notes_.Add(Note::kInvalidUtf8);
      if (value_repairs.control_character) notes_.Add(Note::kControlCharacter);
      if (value_repairs.odd_number) notes_.Add(Note::kOddNumber);
      tables_.AddMember(key, value_repairs.any() ? json::Repaired(raw) : std::string(raw));
      member_names_.push_back(key);
      window_.Consume(p);
      return true;
    }
    if (scan == Scan::kBad) return Stop(Note::kTruncatedInput, "a member's value is no JSON");
    if (!More()) {
      member_names_.push_back(key);
      return Stop(Note::kTruncatedInput, "a member's value ends early");
    }
  }
}

bool DocumentReader::ReadEvents() {
  window_.Consume(window_.at() + 1);
  bool after_event = false;
  while (true) {
    const char next = Peek();
    if (next == '{') {
      notes_.At(progress_.events, window_.OffsetOf(window_.at()));
      if (after_event) notes_.Add(Note::kMissingComma);
      after_event = true;
      if (!ReadEvent()) return false;
    } else if (next == ',') {
      after_event = false;
      window_.Consume(window_.at() + 1);
    } else if (next == ']') {
      window_.Consume(window_.at() + 1);
      return true;
    } else if (next == 0) {
      return Stop(Note::kTruncatedInput, "the list of events ends early");
    } else {
      notes_.At(progress_.events, window_.OffsetOf(window_.at()));
      if (!KeepElement()) return false;
      after_event = true;
    }
  }
}

bool DocumentReader::ReadEvent() {
  while (true) {
    const char* p = window_.at();
    const Scan scan = parser_.Parse(p, window_.end(), event_);
    if (scan == Scan::kOk) {
      parser_.Commit(notes_);
      tables_.Add(event_, {window_.at(), static_cast<size_t>(p - window_.at())});
      ++progress_.events;
      window_.Consume(p);
      return true;
    }
    if (scan == Scan::kBad) return Recover(p);
    if (!More()) {
      if (window_.full()) {
        notes_.Add(Note::kOversizedEvent);
        return Recover(window_.end() - 1);
      }
      return Stop(Note::kTruncatedInput, "an event ends early");
    }
  }
}

bool DocumentReader::KeepElement() { return Recover(window_.at()); }

// After an event that is no JSON: goes on at what looks like the next one.
bool DocumentReader::Recover(const char* failed_at) {
  notes_.Add(Note::kUnparsableEvent);
  window_.Consume(failed_at);
  return SkipToNextEvent();
}

bool DocumentReader::SkipToNextEvent() { return Stop(Note::kTruncatedInput, "unreadable"); }

Result<Trace> DocumentReader::Read() {
  const char first = Peek();
  ReadTopLevel();
  if (cancelled_) return Fail("cancelled");
  if (first != '[' && first != '{') return Fail("no JSON");
  if (!found_events_) {
    return Fail(fmt::format("no \"traceEvents\" in it"));
  }
  return Finish();
}

Result<Trace> DocumentReader::Finish() {
  tables_.Finish();
  notes_.WriteTo(builder_.quality());
  builder_.trace().path = path_;
  return std::move(builder_).Build(true);
}

int Sniff(std::string_view first_bytes, std::string_view) {
  const size_t start = first_bytes.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (start == std::string_view::npos) return 0;
  const char first = first_bytes[start];
  if (first_bytes.find("\"traceEvents\"") != std::string_view::npos) return 90;
  return first == '{' ? 50 : first == '[' ? 40 : 0;
}

Result<Trace> ReadFile(const std::string& path, const ImportOptions& options) {
  Result<std::unique_ptr<ByteSource>> source = OpenByteSource(path);
  if (!source.ok()) return Error{source.error()};
  return DocumentReader(path, options, *source.value()).Read();
}

}  // namespace

const Importer& Importer_kineto() {
  static constexpr Importer importer{
      .slug = "kineto",
      .description = "Chrome trace JSON of torch.profiler and others, plain or gzip",
      .sniff = Sniff,
      .read = ReadFile,
  };
  return importer;
}

}  // namespace trainprof
