// Known keys are told apart by their first four bytes; everything else takes the general path and
// is kept.
#include "trace/formats/chrome/chrome_event_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "trace/formats/chrome/stack_text.h"

namespace trainprof {

using json::Scan;
using json::SkipSpace;
using json::WholeInteger;

namespace {

// A flow id given as text: decimal or 0x hexadecimal.
bool IdFromText(std::string_view text, int64_t& value) {
  if (!text.starts_with("0x") && !text.starts_with("0X")) return WholeInteger(text, value);
  uint64_t bits = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + 2, last, bits, 16);
  if (error != std::errc() || end != last || text.size() == 2) return false;
  value = static_cast<int64_t>(bits);
  return true;
}

uint32_t FourBytes(const char* p) {
  uint32_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Four characters as FourBytes() reads them, whatever the byte order of the machine.
constexpr uint32_t Word(const char (&text)[5]) {
  return std::bit_cast<uint32_t>(std::array<char, 4>{text[0], text[1], text[2], text[3]});
}

// What most events hold is parsed in two functions, ParseArgs() and Parse(), so that the place in the text
// stays in a register. What is rare is apart, and has a place of its own.
template <class Rare>
[[gnu::always_inline]] inline Scan Apart(const char*& p, const Rare& rare) {
  const char* at = p;
  const Scan scan = rare(at);
  p = at;
  return scan;
}

}  // namespace

ChromeEventParser::ChromeEventParser(TraceBuilder& builder)
    : builder_(builder),
      key_device_(Intern("device")),
      key_stream_(Intern("stream")),
      key_correlation_(Intern("correlation")),
      key_bytes_(Intern("bytes")),
      key_kind_(Intern("kind")),
      key_size_(Intern("size")),
      key_stack_(Intern(kCallStackKey)),
      key_opened_at_(Intern(kOpenedAtKey)),
      key_true_tid_(Intern(kTrueTidKey)),
      key_true_stream_(Intern(kTrueStreamKey)) {}

template <class Add>
inline void ChromeEventParser::EachNote(Add add) const {
  using trainprof::Note;
  if (repairs_.bad_escape) add(Note::kBadEscape);
  if (repairs_.invalid_utf8) add(Note::kInvalidUtf8);
  if (repairs_.control_character) add(Note::kControlCharacter);
  if (repairs_.nul) add(Note::kNulByte);
  if (repairs_.bare_literal) add(Note::kBareLiteral);
  if (repairs_.odd_number) add(Note::kOddNumber);
  for (Note note : noted_) add(note);
}

void ChromeEventParser::Commit(ImportNotes& notes) const {
  EachNote([&](trainprof::Note note) { notes.Add(note); });
}

void ChromeEventParser::AppendNotes(std::vector<trainprof::Note>& notes) const {
  EachNote([&](trainprof::Note note) { notes.push_back(note); });
}

// Whether the bytes at p are `text`, and the window goes on after them.
[[gnu::always_inline]] inline bool ChromeEventParser::Follows(const char* p,
                                                              std::string_view text) const {
  return static_cast<size_t>(end_ - p) > text.size() && SameBytes(p, text.data(), text.size());
}

// A string whose opening quote is at p; `guess` is one of texts_.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseString(const char*& p, StringId& guess,
                                                                  StringId& text) {
  const std::string_view guessed = builder_.trace().Text(guess);
  if (Follows(p + 1, guessed) && p[1 + guessed.size()] == '"') {
    p += guessed.size() + 2;
    text = guess;
    return Scan::kOk;
  }
  return Apart(p, [&](const char*& at) { return ParseNewString(at, guess, text); });
}

// An array or object, kept as its text; `guess` is one of raws_.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseRaw(const char*& p, StringId& guess,
                                                               StringId& text) {
  const std::string_view guessed = builder_.trace().Text(guess);
  if (!guessed.empty() && Follows(p, guessed)) {
    p += guessed.size();
    text = guess;
    return Scan::kOk;
  }
  return Apart(p, [&](const char*& at) { return ParseNewRaw(at, guess, text); });
}

// The value of one of the arguments, or of a kept field, of an event of that name.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseValue(const char*& p, StringId name,
                                                                 Arg& arg) {
  ArgValue& value = arg.value;
  const bool is_text = *p == '"';
  if (is_text || *p == '[' || *p == '{') {
    const uint32_t kind = kArgs + static_cast<uint32_t>(Index(arg.key));
    StringId& last = last_values_[Index(arg.key) % last_values_.size()];
    value.type = is_text ? ArgValue::Type::kString : ArgValue::Type::kJson;
    const Scan scan = is_text ? ParseString(p, texts_.After(kind, last, name), value.text)
                              : ParseRaw(p, raws_.After(kind, last, name), value.text);
    last = value.text;
    return scan;
  }
  if (const char* after = json::ParseSmallInteger(p, value.integer); after != nullptr) {
    if (after >= end_) return Scan::kNeedMore;
    p = after;
    value.type = ArgValue::Type::kInt;
    return Scan::kOk;
  }
  return Apart(p, [&](const char*& at) { return ParseBare(at, value); });
}

// Names and categories: a text; anything else is counted and kept as its text.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseTextOrRaw(const char*& p,
                                                                     StringId& guess,
                                                                     StringId& text) {
  if (*p == '"') return ParseString(p, guess, text);
  return Apart(p, [&](const char*& at) { return ParseNoText(at, text); });
}

// ph: the first character of a text.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseLetter(const char*& p, char& letter) {
  // As a signed byte, what is not ASCII is below ' ' too.
  const bool plain = static_cast<signed char>(p[1]) > ' ' && p[1] != '\\' && p[1] != '"';
  if (p[0] == '"' && plain && p[2] == '"') {
    letter = p[1];
    p += 3;
    return Scan::kOk;
  }
  return Apart(p, [&](const char*& at) { return ParseOddLetter(at, letter); });
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseTime(const char*& p, int64_t& ns,
                                                                bool& present) {
  const char* const after = json::ParseMicroseconds(p, ns);
  if (after == nullptr) {
    return Apart(p, [&](const char*& at) { return ParseOddTime(at, ns, present); });
  }
  if (after >= end_) return Scan::kNeedMore;
  p = after;
  present = true;
  return Scan::kOk;
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseId(const char*& p, ChromeId& id) {
  const char* const after = json::ParseSmallInteger(p, id.number);
  if (after == nullptr) return Apart(p, [&](const char*& at) { return ParseOddId(at, id); });
  if (after >= end_) return Scan::kNeedMore;
  p = after;
  id.kind = ChromeId::Kind::kNumber;
  return Scan::kOk;
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseName(const char*& p,
                                                                ChromeEvent& event) {
  StringId& guess = texts_.After(kName, name_before_, name_before_that_, event.category);
  const Scan scan = ParseTextOrRaw(p, guess, event.name);
  name_before_that_ = name_before_;
  name_before_ = event.name;
  return scan;
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseCategory(const char*& p,
                                                                    ChromeEvent& event) {
  StringId& guess = texts_.After(kCategory, name_before_, name_before_that_);
  return ParseTextOrRaw(p, guess, event.category);
}

// A field by any spelling of its key ("\u0070h", "ph" : ...), and the rarer fields.
Scan ChromeEventParser::FieldValue(std::string_view key, const char*& p, ChromeEvent& event) {
  if (key == "ph") return Once(kPhase), ParseLetter(p, event.phase);
  if (key == "name") return Once(kName), ParseName(p, event);
  if (key == "cat") return Once(kCategory), ParseCategory(p, event);
  if (key == "ts") return Once(kTime), ParseTime(p, event.time_ns, event.has_time);
  if (key == "dur") return Once(kDuration), ParseTime(p, event.duration_ns, event.has_duration);
  if (key == "pid") return Once(kPid), ParseId(p, event.pid);
  if (key == "tid") return Once(kTid), ParseId(p, event.tid);
  if (key == "args" && *p == '{') return Once(kArgs), ParseArgs(p, event);
  int64_t small = 0;
  if (key == "id" && (seen_fields_ & kId) == 0) {
    if (const char* after = json::ParseSmallInteger(p, small); after != nullptr) {
      if (after >= end_) return Scan::kNeedMore;
      Once(kId);
      p = after;
      event.id = small;
      event.has_id = true;
      return Scan::kOk;
    }
  }
  if (key == "bp" && p[0] == '"' && p[1] == 'e' && p[2] == '"') {
    Once(kBind);
    p += 3;
    event.bind = 'e';
    return Scan::kOk;
  }
  if (key == "s" && p[0] == '"' && (p[1] == 'g' || p[1] == 'p' || p[1] == 't') && p[2] == '"') {
    Once(kScope);
    event.scope = p[1];
    p += 3;
    return Scan::kOk;
  }
  return KeepField(key, p, event);
}

// Keeps a field that has no column among the arguments. The key is interned last: an event that the
// window cuts off must leave nothing behind that its whole text would not.
Scan ChromeEventParser::KeepField(std::string_view key, const char*& p, ChromeEvent& event) {
  const std::string kept = fmt::format("{}{}", kFieldPrefix, key);
  const bool is_id = key == "id";
  Arg arg;
  if (const Scan scan = ParseValue(p, event.name, arg); scan != Scan::kOk) return scan;
  arg.key = Intern(kept);
  event.args.push_back(arg);
  has_fields_ = true;
  if (is_id) {
    const std::string_view text = builder_.trace().Text(arg.value.text);
    if (arg.value.type == ArgValue::Type::kString && IdFromText(text, event.id)) {
      event.has_id = true;
    }
  }
  return Scan::kOk;
}

// `spelled` is the key as it stands in the file, with the quote that closes it.
void ChromeEventParser::NextKey::Set(StringId previous, std::string_view spelled, StringId id) {
  char bytes[kLongest] = {};
  char ones[kLongest] = {};
  std::memcpy(bytes, spelled.data(), spelled.size());
  std::memset(ones, 0xFF, spelled.size());
  std::memcpy(text, bytes, sizeof(text));
  std::memcpy(mask, ones, sizeof(mask));
  before = previous;
  key = id;
  length = static_cast<uint32_t>(spelled.size());
}

// One that did not stand behind the key before the last time.
Scan ChromeEventParser::ParseNewArgKey(const char*& p, StringId& key) {
  const char* first = p + 1;
  std::string_view text;
  if (const Scan scan = ParseKey(p, text); scan != Scan::kOk) return scan;
  const bool as_spelled = text.data() == first;  // no escapes
  key = text.starts_with(kFieldPrefix) ? Intern(fmt::format("{}{}", kFieldPrefix, text))
                                       : Intern(text);
  if (as_spelled && text.size() < NextKey::kLongest) {
    next_keys_[Index(last_key_) % next_keys_.size()].Set(last_key_, {first, text.size() + 1}, key);
  }
  last_key_ = key;
  return Scan::kOk;
}

// Whether one of the arguments so far has the key. Looks at each of a few, and into a table from
// kFew arguments on: an event of a million must not cost a million squared.
bool ChromeEventParser::IsRepeated(StringId key, const std::vector<Arg>& args) {
  constexpr size_t kFew = 64;
  if (args.size() < kFew) {
    return std::any_of(args.begin(), args.end(), [&](const Arg& arg) { return arg.key == key; });
  }
  if (!is_long_) {
    is_long_ = true;
    ++long_event_;
    noted_to_ = 0;
  }
  long_event_of_key_.resize(std::max(long_event_of_key_.size(), builder_.trace().strings.size()));
  for (; noted_to_ < args.size(); ++noted_to_) {
    long_event_of_key_[Index(args[noted_to_].key)] = long_event_;
  }
  return long_event_of_key_[Index(key)] == long_event_;
}

// The arguments that also fill columns. Of repeated ones the last integer counts that can be told
// from none.
void ChromeEventParser::Decode(const Arg& arg, ChromeEvent& event) const {
  if (arg.value.type == ArgValue::Type::kInt && arg.value.integer != ChromeEvent::kNoValue) {
    const int64_t value = arg.value.integer;
    if (arg.key == key_device_) event.device = value;
    if (arg.key == key_stream_) event.stream = value;
    if (arg.key == key_correlation_) event.correlation = value;
    if (arg.key == key_bytes_) event.bytes = value;
    if (arg.key == key_size_) event.api_bytes = value;
  }
  if (arg.value.type == ArgValue::Type::kString) {
    int64_t size = 0;
    if (arg.key == key_kind_) event.copy_kind = arg.value.text;
    if (arg.key == key_opened_at_) event.opened_at = arg.value.text;
    if (arg.key == key_stack_ && event.stack == kEmptyString) event.stack = arg.value.text;
    if (arg.key == key_size_ && WholeInteger(builder_.trace().Text(arg.value.text), size)) {
      event.api_bytes = size;
    }
  }
}

// "key" and its colon; p is then at the value. The view lasts until the next text is parsed.
Scan ChromeEventParser::ParseKey(const char*& p, std::string_view& key) {
  if (p >= end_) return Scan::kNeedMore;
  if (*p != '"') return Scan::kBad;
  if (const Scan scan = ParseText(p, key); scan != Scan::kOk) return scan;
  if (*p != ':') p = SkipSpace(p);
  if (p >= end_) return Scan::kNeedMore;
  if (*p != ':') return Scan::kBad;
  ++p;
  p = SkipSpace(p);
  return p < end_ ? Scan::kOk : Scan::kNeedMore;
}

// Reads kLongest bytes at p, within the window's padding.
[[gnu::always_inline]] inline bool ChromeEventParser::NextKey::Matches(const char* p) const {
  uint64_t difference = 0;
  for (size_t i = 0; i < std::size(text); ++i) {
    uint64_t word;
    std::memcpy(&word, p + i * sizeof(word), sizeof(word));
    difference |= (word ^ text[i]) & mask[i];
  }
  return difference == 0;
}

// An argument's key and its colon, interned.
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseArgKey(const char*& p, StringId& key) {
  NextKey& next = next_keys_[Index(last_key_) % next_keys_.size()];
  if (next.before == last_key_ && *p == '"' && next.Matches(p + 1)) {
    const char* after = p + 1 + next.length;
    if (*after == ':') {
      key = last_key_ = next.key;
      p = SkipSpace(after + 1);
      return p < end_ ? Scan::kOk : Scan::kNeedMore;
    }
  }
  return Apart(p, [&](const char*& at) { return ParseNewArgKey(at, key); });
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseArg(const char*& p, ChromeEvent& event) {
  StringId key;
  if (const Scan scan = ParseArgKey(p, key); scan != Scan::kOk) return scan;
  const uint64_t bit = uint64_t{1} << (Index(key) % 64);
  if ((seen_keys_ & bit) != 0 && IsRepeated(key, event.args)) Note(Note::kDuplicateKey);
  seen_keys_ |= bit;
  Arg& arg = event.args.emplace_back();  // in place: a copy of what was just written stalls
  arg.key = key;
  if (const Scan scan = ParseValue(p, event.name, arg); scan != Scan::kOk) return scan;
  if (key < key_device_ || key > key_true_stream_) return Scan::kOk;
  if (key >= key_true_tid_ && arg.value.type == ArgValue::Type::kInt) {
    event.true_tid = arg.value.integer;
    event.on_stream = key == key_true_stream_;
    event.args.pop_back();
    return Scan::kOk;
  }
  Decode(arg, event);
  return Scan::kOk;
}

[[gnu::always_inline]] inline Scan ChromeEventParser::ParseField(const char*& p,
                                                                 ChromeEvent& event) {
  // The common spelling: "key":
  if (*p == '"') {
    const char* key = p + 1;
    const uint32_t word = FourBytes(key);
    const auto colon_at = [&](int length) { return key[length] == '"' && key[length + 1] == ':'; };
    if (word == Word("name") && colon_at(4)) {
      p = SkipSpace(key + 6);
      Once(kName);
      return ParseName(p, event);
    }
    if ((word == Word("cat\"")) && colon_at(3)) {
      p = SkipSpace(key + 5);
      Once(kCategory);
      return ParseCategory(p, event);
    }
    if (word == Word("args") && colon_at(4)) {
      p = SkipSpace(key + 6);
      if (*p == '{') {
        Once(kArgs);
        return Apart(p, [&](const char*& at) { return ParseArgs(at, event); });
      }
      if (p >= end_) return Scan::kNeedMore;
      Note(Note::kWrongType);
      return Apart(p, [&](const char*& at) { return KeepField("args", at, event); });
    }
    if (word == Word("ph\":")) {
      p = SkipSpace(key + 4);
      Once(kPhase);
      return ParseLetter(p, event.phase);
    }
    if (word == Word("ts\":")) {
      p = SkipSpace(key + 4);
      Once(kTime);
      return ParseTime(p, event.time_ns, event.has_time);
    }
    if (word == Word("dur\"") && colon_at(3)) {
      p = SkipSpace(key + 5);
      Once(kDuration);
      return ParseTime(p, event.duration_ns, event.has_duration);
    }
    if (word == Word("pid\"") && colon_at(3)) {
      p = SkipSpace(key + 5);
      Once(kPid);
      return ParseId(p, event.pid);
    }
    if (word == Word("tid\"") && colon_at(3)) {
      p = SkipSpace(key + 5);
      Once(kTid);
      return ParseId(p, event.tid);
    }
  }
  return Apart(p, [&](const char*& at) {
    std::string_view key;
    const Scan scan = ParseKey(at, key);
    return scan == Scan::kOk ? FieldValue(key, at, event) : scan;
  });
}

// The members of the object whose '{' is at p: an event's arguments or its fields; p moves past its '}'.
template <bool of_args>
[[gnu::always_inline]] inline Scan ChromeEventParser::ParseMembers(const char*& p,
                                                                   ChromeEvent& event) {
  p = SkipSpace(p + 1);
  if (*p == '}') {
    ++p;
    return Scan::kOk;
  }
  while (true) {
    const Scan scan = of_args ? ParseArg(p, event) : ParseField(p, event);
    if (scan != Scan::kOk) return scan;
    p = SkipSpace(p);
    if (*p == ',') {
      p = SkipSpace(p + 1);
      continue;
    }
    if (p >= end_) return Scan::kNeedMore;
    if (*p != '}') return Scan::kBad;
    ++p;
    return Scan::kOk;
  }
}

Scan ChromeEventParser::ParseArgs(const char*& p, ChromeEvent& event) {
  // The first argument's key follows from the category, which stands before it in most files.
  last_key_ = event.category;
  return Apart(p, [&](const char*& at) { return ParseMembers<true>(at, event); });
}

Scan ChromeEventParser::Parse(const char*& p, const char* end, ChromeEvent& event) {
  end_ = end;
  seen_fields_ = 0;
  seen_keys_ = 0;
  is_long_ = false;
  has_fields_ = false;
  repairs_ = {};
  noted_.clear();
  event.Clear();
  const Scan scan = Apart(p, [&](const char*& at) { return ParseMembers<false>(at, event); });
  if (scan != Scan::kOk) return scan;
  event.repaired = repairs_.any();
  if (has_fields_) PutFieldsFirst(event.args, builder_.trace().strings);
  return Scan::kOk;
}

}  // namespace trainprof
