// The rarer values of an event's fields and arguments.
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

// One that is not the text that was guessed.
Scan ChromeEventParser::ParseNewString(const char*& p, StringId& guess, StringId& text) {
  const char* first = p + 1;
  std::string_view view;
  if (const Scan scan = ParseText(p, view); scan != Scan::kOk) return scan;
  text = Intern(view);
  if (view.data() == first) guess = text;
  return Scan::kOk;
}

Scan ChromeEventParser::ParseNewRaw(const char*& p, StringId& guess, StringId& text) {
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

// What should be a text and is none: counted, and kept as its text.
Scan ChromeEventParser::ParseNoText(const char*& p, StringId& text) {
  const char* first = p;
  json::Repairs repairs;
  if (const Scan scan = json::SkipValue(p, end_, repairs); scan != Scan::kOk) return scan;
  repairs_.Merge(repairs);
  Note(Note::kWrongType);
  const std::string_view raw(first, static_cast<size_t>(p - first));
  text = Intern(repairs.any() ? json::Repaired(raw) : std::string(raw));
  return Scan::kOk;
}

Scan ChromeEventParser::ParseOddLetter(const char*& p, char& letter) {
  StringId text = kEmptyString;
  letter = 0;
  return *p == '"' ? ParseNewString(p, texts_.After(kPhase, {}, {}), text) : ParseNoText(p, text);
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

// A text, or what is no integer.
Scan ChromeEventParser::ParseOddId(const char*& p, ChromeId& id) {
  StringId text_id = kEmptyString;
  const bool is_text = *p == '"';
  std::string_view text;
  if (is_text) {
    if (const Scan scan = ParseText(p, text); scan != Scan::kOk) return scan;
  } else {
    if (const Scan scan = ParseNoText(p, text_id); scan != Scan::kOk) return scan;
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
