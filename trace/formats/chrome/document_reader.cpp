#include "trace/formats/chrome/document_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/base/parallel.h"
#include "trace/formats/io/memory_limit.h"

namespace trainprof {

using json::Scan;
using json::SkipSpace;

namespace {

// Columns double as they grow: while one moves, what is held needs half as much again.
constexpr std::pair<uint64_t, uint64_t> kGrowth{3, 2};
// Top-level members of distinct names that are told apart; real files hold some ten.
constexpr size_t kMaxMemberNames = 1 << 16;
constexpr size_t kNamesShown = 8;  // in an error
// Of a member's name, in messages.
constexpr size_t kNameShown = 80;

std::string Shortened(std::string_view name) {
  if (name.size() <= kNameShown) return std::string(name);
  return fmt::format("{}... ({} bytes)", name.substr(0, kNameShown), name.size());
}

}  // namespace

DocumentReader::DocumentReader(const std::string& path, const ImportOptions& options,
                               ByteSource& source)
    : path_(path),
      options_(options),
      source_(source),
      window_(source),
      parser_(builder_),
      tables_(builder_, notes_, options.args) {
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) progress_.file_bytes = static_cast<uint64_t>(info.st_size);
  constexpr size_t kMostThreads = 4;  // see EventsAhead
  threads_ = options.threads != 0 ? options.threads : std::min<size_t>(UsableCores(), kMostThreads);
  max_bytes_ = options.max_memory_bytes != 0 ? options.max_memory_bytes : ReadableMemoryBytes();
}

// Reads on while keeping what is not consumed; false at the end of the data.
bool DocumentReader::More() {
  if (!Tick()) return false;
  return window_.Refill();
}

std::string DocumentReader::TooLarge(uint64_t held) const {
  constexpr double kMiB = 1 << 20;
  return fmt::format(
      "{}: the trace is larger than the {:.0f} MiB of memory that it may take ({:.0f} MiB so far). "
      "Record fewer steps, or read it on a machine with more memory",
      Place(window_.at()), static_cast<double>(max_bytes_) / kMiB,
      static_cast<double>(held) / kMiB);
}

// Reports progress; false when memory is short.
bool DocumentReader::Tick() {
  CancelPoint();
  const uint64_t held = builder_.size_bytes() + tables_.size_bytes();
  if (held / kGrowth.second * kGrowth.first > max_bytes_) {
    failure_ = TooLarge(held);
    return false;
  }
  if (options_.progress) {
    progress_.file_bytes_read = FileBytesRead();
    progress_.parsed_bytes = window_.OffsetOf(window_.at());
    options_.progress(progress_);
  }
  ExpectTheRest();
  return true;
}

// Once the first part of a large file tells how many rows the whole has about: room for them all.
void DocumentReader::ExpectTheRest() {
  constexpr uint64_t kEnough = 16 << 20;  // bytes of JSON
  constexpr double kMargin = 1.12;        // gzip is inflated ahead
  constexpr double kWorthIt = 0.5;        // of the file
  if (expected_ || window_.OffsetOf(window_.at()) < kEnough) return;
  expected_ = true;
  // Of the file, what stands for all that is parsed.
  const auto parsed = static_cast<double>(window_.OffsetOf(window_.at()));
  const auto given = static_cast<double>(std::max(read_to_, window_.OffsetOf(window_.end())));
  const double read = static_cast<double>(FileBytesRead()) * parsed / given;
  const auto whole = static_cast<double>(progress_.file_bytes);
  if (read <= 0 || read > whole * kWorthIt) return;
  const double times = whole / read * kMargin;
  // Where room counts as memory (RLIMIT_AS), what comes later may be of another kind.
  const auto most = static_cast<double>(max_bytes_ / 2);
  if (static_cast<double>(builder_.size_bytes()) * times < most) builder_.ExpectTimes(times);
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

// Ends the reading where no more can be understood; what was read is kept.
bool DocumentReader::Stop(Note note, std::string_view what) {
  if (!failure_.empty()) return false;
  const std::string damage = source_.damage();
  notes_.AddWithDetail(note, fmt::format("{} ({}){}{}", what, Place(window_.at()),
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
  if (first == '[') return ReadEvents();
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
  if (!ReadKey(key)) return false;
  if (Peek() != ':') return Stop(Note::kTruncatedInput, "no ':' after a member's name");
  window_.Consume(window_.at() + 1);
  const char first = Peek();
  notes_.At(progress_.events, window_.OffsetOf(window_.at()));
  if (!NoteMember(key)) {
    notes_.AddWithDetail(
        Note::kDuplicateKey,
        fmt::format("\"{}\" occurs twice at the top level; both are read", Shortened(key)));
  }
  if (key == "traceEvents" && first == '[') return ReadEvents();
  return ReadValue(key);
}

// False when the name has occurred before.
bool DocumentReader::NoteMember(const std::string& key) {
  if (known_members_.contains(key)) return false;
  if (known_members_.size() < kMaxMemberNames) known_members_.insert(key);
  if (member_names_.size() < kNamesShown) member_names_.push_back(Shortened(key));
  return true;
}

bool DocumentReader::ReadKey(std::string& key) {
  json::Repairs repairs;
  while (true) {
    const char* p = window_.at() + 1;
    const Scan scan = json::DecodeString(p, window_.end(), key, repairs);
    if (scan == Scan::kOk) {
      window_.Consume(p);
      return true;
    }
    if (!More()) return Stop(Note::kTruncatedInput, "a member's name ends early");
  }
}

bool DocumentReader::ReadValue(const std::string& key) {
  while (true) {
    const char* p = window_.at();
    json::Repairs repairs;
    const Scan scan = json::SkipValue(p, window_.end(), repairs);
    if (scan == Scan::kOk) {
      const std::string_view raw(window_.at(), static_cast<size_t>(p - window_.at()));
      notes_.At(progress_.events, window_.OffsetOf(window_.at()));
      AddRepairs(repairs);
      if (!tables_.AddMember(key, repairs.any() ? json::Repaired(raw) : std::string(raw))) {
        notes_.Add(Note::kOversizedMember);
      }
      window_.Consume(p);
      return true;
    }
    if (scan == Scan::kBad) {
      window_.Consume(p);
      return Stop(Note::kTruncatedInput,
                  fmt::format("the value of \"{}\" is no JSON", Shortened(key)));
    }
    if (More()) continue;
    if (window_.full()) return SkipHugeValue(key);
    return Stop(Note::kTruncatedInput,
                fmt::format("the value of \"{}\" ends early", Shortened(key)));
  }
}

void DocumentReader::AddRepairs(const json::Repairs& repairs) {
  if (repairs.bare_literal) notes_.Add(Note::kBareLiteral);
  if (repairs.bad_escape) notes_.Add(Note::kBadEscape);
  if (repairs.invalid_utf8) notes_.Add(Note::kInvalidUtf8);
  if (repairs.control_character) notes_.Add(Note::kControlCharacter);
  if (repairs.nul) notes_.Add(Note::kNulByte);
  if (repairs.odd_number) notes_.Add(Note::kOddNumber);
}

// Passes a value that the window cannot hold, by its brackets alone.
bool DocumentReader::SkipHugeValue(const std::string& key) {
  notes_.AddWithDetail(Note::kOversizedMember,
                       fmt::format("\"{}\" is larger than {} MiB ({}); dropped", Shortened(key),
                                   JsonWindow::kMaxBytes >> 20, Place(window_.at())));
  int64_t depth = 0;
  bool in_text = false;
  bool escaped = false;
  do {
    const char* p = window_.at();
    for (; p < window_.end(); ++p) {
      if (escaped) {
        escaped = false;
      } else if (*p == '"') {
        in_text = !in_text;
      } else if (in_text) {
        escaped = *p == '\\';
      } else if (*p == '{' || *p == '[') {
        ++depth;
      } else if (*p == '}' || *p == ']') {
        --depth;
      }
      if (depth <= 0 && !in_text) {
        window_.Consume(p + 1);
        return true;
      }
    }
    window_.Consume(p);
  } while (More());
  return Stop(Note::kTruncatedInput, "a large member ends early");
}

// Read() at the top level.
Result<Trace> DocumentReader::Read() {
  const char first = Peek();
  const bool complete = ReadTopLevel();
  if (!failure_.empty()) return Fail(failure_);
  if (!found_events_) return Fail(WhyNoEvents(first));
  if (complete && Peek() != 0) {
    notes_.AddWithDetail(Note::kTrailingData,
                         fmt::format("data after the end of the JSON ({})", Place(window_.at())));
  }
  // All of it was understood: what the file is damaged by may lie behind it, as a checksum does.
  if (const std::string damage = source_.damage(); complete && !damage.empty()) {
    notes_.AddWithDetail(Note::kDamagedInput, damage);
  }
  const bool only_others = progress_.events > 0 && no_events_ == progress_.events;
  if (only_others || (progress_.events == 0 && notes_.count(Note::kNotAnEvent) > 0)) {
    return Fail(
        "a JSON list without a single event; expected objects with \"ph\" and \"ts\". Is "
        "this file a trace?");
  }
  return Finish();
}

// The error of a file without events, with what to do about it.
std::string DocumentReader::WhyNoEvents(char first) const {
  const std::string damage = source_.damage();
  if (first != '{') {
    return fmt::format(
        "byte {}: expected '{{' or '[' of a Chrome trace, found {}. {}",
        window_.OffsetOf(window_.at()),
        first == 0 ? std::string("the end") : fmt::format("'{}'", first),
        damage.empty() ? "Give the .json or .json.gz file that torch.profiler wrote" : damage);
  }
  const auto has = [&](std::string_view name) {
    return known_members_.contains(std::string(name));
  };
  if (has("schema") && has("nodes")) {
    return "this is a PyTorch execution trace (ExecutionTraceObserver), which holds no times; a "
           "profiler trace was expected. Give the file that torch.profiler's "
           "export_chrome_trace or tensorboard_trace_handler wrote";
  }
  std::string names;
  for (size_t i = 0; i < member_names_.size(); ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", member_names_[i]);
  }
  return fmt::format(
      "a JSON object without a \"traceEvents\" list, up to byte {} (it holds {}){}{}. Expected a "
      "Chrome trace; give the file that torch.profiler wrote",
      window_.OffsetOf(window_.at()), names.empty() ? "nothing" : names, damage.empty() ? "" : ": ",
      damage);
}

Result<Trace> DocumentReader::Finish() {
  tables_.Finish();
  notes_.WriteTo(builder_.quality());
  builder_.trace().path = path_;
  Trace trace = std::move(builder_).Build(true, EqualRows::kByContent);
  tables_.FillCopySizes(trace);
  return trace;
}

}  // namespace trainprof
