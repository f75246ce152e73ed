// The values of an event's fields and arguments.
#include "trace/formats/chrome/chrome_event_parser.h"

namespace trainprof {

using json::Bare;
using json::BareValue;
using json::Scan;
using json::WholeInteger;

// A string whose opening quote is at p. The view is into the window or into scratch_.
Scan ChromeEventParser::ParseText(const char*& p, std::string_view& text) {
  const char* first = p + 1;
  const char* special = json::FindSpecial(first);
  if (*special == '"') {
    text = {first, static_cast<size_t>(special - first)};
    p = special + 1;
    return Scan::kOk;
  }
  const char* at = first;
  const Scan scan = json::DecodeString(at, end_, scratch_, repairs_);
  text = scratch_;
  p = at;
  return scan;
}

// The value of one of the arguments, or of a kept field, of an event of that name.
Scan ChromeEventParser::ParseValue(const char*& p, StringId name, Arg& arg) {
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
  return ParseBare(p, value);
}

// Whether the bytes at p are `text`, and the window goes on after them.
bool ChromeEventParser::Follows(const char* p, std::string_view text) const {
  return static_cast<size_t>(end_ - p) > text.size() && SameBytes(p, text.data(), text.size());
}

// A string whose opening quote is at p; `guess` is one of texts_.
Scan ChromeEventParser::ParseString(const char*& p, StringId& guess, StringId& text) {
  const std::string_view guessed = builder_.trace().Text(guess);
  if (Follows(p + 1, guessed) && p[1 + guessed.size()] == '"') {
    p += guessed.size() + 2;
    text = guess;
    return Scan::kOk;
  }
  const char* first = p + 1;
  std::string_view view;
  if (const Scan scan = ParseText(p, view); scan != Scan::kOk) return scan;
  text = Intern(view);
  if (view.data() == first) guess = text;
  return Scan::kOk;
}

// An array or object, kept as its text; `guess` is one of raws_.
Scan ChromeEventParser::ParseRaw(const char*& p, StringId& guess, StringId& text) {
  const std::string_view guessed = builder_.trace().Text(guess);
  if (!guessed.empty() && Follows(p, guessed)) {
    p += guessed.size();
    text = guess;
    return Scan::kOk;
  }
  const char* first = p;
  json::Repairs repairs;
  if (const Scan scan = json::SkipValue(p, end_, repairs); scan != Scan::kOk) return scan;
  const std::string_view raw(first, static_cast<size_t>(p - first));
  if (repairs.any()) {
    repairs_.Merge(repairs);
    text = Intern(json::Repaired(raw));
  } else {
    text = guess = Intern(raw);
  }
  return Scan::kOk;
}

// A real, a literal, a large integer or an oddity.
Scan ChromeEventParser::ParseBare(const char*& p, ArgValue& value) {
  const char* after = json::SkipBare(p);
  if (after >= end_) return Scan::kNeedMore;
  if (after == p) return Scan::kBad;
  const std::string_view token(p, static_cast<size_t>(after - p));
  p = after;
  const BareValue bare = json::ReadBare(token);
  repairs_.odd_number |= bare.odd_number;
  switch (bare.kind) {
    case Bare::kInteger:
      value.type = ArgValue::Type::kInt;
      value.integer = bare.integer;
      return Scan::kOk;
    case Bare::kReal:
      value.type = ArgValue::Type::kDouble;
      value.real = bare.real;
      return Scan::kOk;
    case Bare::kTrue:
      value.type = ArgValue::Type::kTrue;
      return Scan::kOk;
    case Bare::kFalse:
      value.type = ArgValue::Type::kFalse;
      return Scan::kOk;
    case Bare::kNull:
      value.type = ArgValue::Type::kNull;
      return Scan::kOk;
    case Bare::kBigInteger:
    case Bare::kBigReal:
      value.type = bare.odd_number ? ArgValue::Type::kString : ArgValue::Type::kJson;
      value.text = Intern(token);
      return Scan::kOk;
    case Bare::kOdd:
      break;
  }
  repairs_.bare_literal = true;
  value.type = ArgValue::Type::kString;
  value.text = Intern(json::ValidUtf8(token, repairs_));
  return Scan::kOk;
}

// Names and categories: a text; anything else is counted and kept as its text.
Scan ChromeEventParser::ParseTextOrRaw(const char*& p, StringId& guess, StringId& text) {
  if (*p == '"') return ParseString(p, guess, text);
  const char* first = p;
  json::Repairs repairs;
  if (const Scan scan = json::SkipValue(p, end_, repairs); scan != Scan::kOk) return scan;
  repairs_.Merge(repairs);
  Note(Note::kWrongType);
  const std::string_view raw(first, static_cast<size_t>(p - first));
  text = Intern(repairs.any() ? json::Repaired(raw) : std::string(raw));
  return Scan::kOk;
}

// ph: the first character of a text.
Scan ChromeEventParser::ParseLetter(const char*& p, char& letter) {
  // As a signed byte, what is not ASCII is below ' ' too.
  const bool plain = static_cast<signed char>(p[1]) > ' ' && p[1] != '\\' && p[1] != '"';
  if (p[0] == '"' && plain && p[2] == '"') {
    letter = p[1];
    p += 3;
    return Scan::kOk;
  }
  StringId text = kEmptyString;
  if (const Scan scan = ParseTextOrRaw(p, texts_.After(kPhase, {}, {}), text); scan != Scan::kOk)
    return scan;
  letter = 0;
  return Scan::kOk;
}

Scan ChromeEventParser::ParseTime(const char*& p, int64_t& ns, bool& present) {
  const char* const after = json::ParseMicroseconds(p, ns);
  if (after == nullptr) return ParseOddTime(p, ns, present);
  if (after >= end_) return Scan::kNeedMore;
  p = after;
  present = true;
  return Scan::kOk;
}

// A text, more than three decimals, an exponent, no number at all.
Scan ChromeEventParser::ParseOddTime(const char*& p, int64_t& ns, bool& present) {
  std::string_view token;
  const bool as_text = *p == '"';
  if (as_text) {
    if (const Scan scan = ParseText(p, token); scan != Scan::kOk) return scan;
  } else {
    const char* first = p;
    json::Repairs repairs;
    if (const Scan scan = json::SkipValue(p, end_, repairs); scan != Scan::kOk) return scan;
    repairs_.Merge(repairs);
    token = {first, static_cast<size_t>(p - first)};
  }
  constexpr int kMicrosecondShift = 3;  // us -> ns
  const std::optional<json::Scaled> scaled = json::ScaledDecimal(token, kMicrosecondShift);
  present = scaled.has_value();
  if (!scaled) {
    Note(Note::kBadTime);
    return Scan::kOk;
  }
  if (as_text) Note(Note::kNumberAsText);
  if (scaled->rounded) Note(Note::kTimeBelowNs);
  ns = scaled->value;
  return Scan::kOk;
}

Scan ChromeEventParser::ParseId(const char*& p, ChromeId& id) {
  const char* const after = json::ParseSmallInteger(p, id.number);
  if (after == nullptr) return ParseOddId(p, id);
  if (after >= end_) return Scan::kNeedMore;
  p = after;
  id.kind = ChromeId::Kind::kNumber;
  return Scan::kOk;
}

// A text, or what is no integer.
Scan ChromeEventParser::ParseOddId(const char*& p, ChromeId& id) {
  StringId text_id = kEmptyString;
  const bool is_text = *p == '"';
  std::string_view text;
  if (is_text) {
    if (const Scan scan = ParseText(p, text); scan != Scan::kOk) return scan;
  } else {
    if (const Scan scan = ParseTextOrRaw(p, texts_.After(kPid, {}, {}), text_id); scan != Scan::kOk)
      return scan;
    text = builder_.trace().Text(text_id);
  }
  constexpr std::string_view kStream = "stream ";
  if (WholeInteger(text, id.number)) {
    id.kind = ChromeId::Kind::kNumber;
  } else if (is_text && text.starts_with(kStream) &&
             WholeInteger(text.substr(kStream.size()), id.number)) {
    id.kind = ChromeId::Kind::kStream;
  } else {
    id.kind = ChromeId::Kind::kText;
    id.text = Intern(text);
  }
  return Scan::kOk;
}

}  // namespace trainprof
