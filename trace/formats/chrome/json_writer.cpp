// Numbers and strings as JSON text.
#include "trace/formats/chrome/json_writer.h"

#include <cmath>
#include <string>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/io/json_text.h"

namespace trainprof {
namespace {

// Whether any of eight characters has to be escaped: a quote, a backslash, or one below the space.
bool HasEscaped(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = 0x8080808080808080;
  const auto zero_byte = [](uint64_t x) { return (x - kOnes) & ~x & kHighs; };
  const uint64_t below_space = (word - kOnes * ' ') & ~word & kHighs;
  return (below_space | zero_byte(word ^ kOnes * '"') | zero_byte(word ^ kOnes * '\\')) != 0;
}

// Copies a text in which nothing has to be escaped; false where something does, and what was copied means nothing.
bool CopyPlain(std::string_view text, char* to) {
  const auto copy = [&](size_t at, size_t size) {
    // Shorter than a word: filled up with spaces.
    uint64_t word = 0x2020202020202020;
    std::memcpy(&word, text.data() + at, size);
    std::memcpy(to + at, &word, size);
    return !HasEscaped(word);
  };
  if (text.size() < 8) {
    for (size_t at = 0; at < text.size(); ++at) {
      if (!copy(at, 1)) return false;
    }
    return true;
  }
  for (size_t at = 0; at + 8 < text.size(); at += 8) {
    if (!copy(at, 8)) return false;
  }
  return copy(text.size() - 8, 8);  // overlaps the one before
}

}  // namespace

// By words: most texts are short, and memcpy of a size that varies costs more than they do. Not inline: of a choice of
// two literals GCC 12 knows the size of both, and warns of words that are never read there.
[[gnu::noinline]] void JsonWriter::CopyBytes(const char* from, size_t size, char* to) {
  constexpr size_t kWord = sizeof(uint64_t);
  if (size >= kWord && size <= 8 * kWord) {
    for (size_t at = 0; at + kWord < size; at += kWord) std::memcpy(to + at, from + at, kWord);
    std::memcpy(to + size - kWord, from + size - kWord, kWord);  // overlaps the one before
  } else if (size > 0) {                                         // of nothing both may be null
    std::memcpy(to, from, size);
  }
}

// Not inline: what is written into room that is there stays short.
[[gnu::noinline]] void JsonWriter::Grow(size_t more) {
  const size_t written = size();
  buffer_.resize((buffer_.size() + more) * 2);
  at_ = buffer_.data() + written;
  end_ = buffer_.data() + buffer_.size();
}

void JsonWriter::Real(double value) {
  if (!std::isfinite(value)) {
    // Reading never makes one; a double computed by a recording could.
    Raw(std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  Reserve(kNumberBytes + 2);
  char* const first = at_;
  at_ = std::to_chars(first, first + kNumberBytes, value).ptr;
  const std::string_view text(first, static_cast<size_t>(at_ - first));
  if (text.find_first_of(".e") == std::string_view::npos) Raw(".0");
}

void JsonWriter::Microseconds(int64_t ns) {
  Reserve(kNumberBytes);
  char* p = at_;
  uint64_t magnitude = static_cast<uint64_t>(ns);
  if (ns < 0) {
    magnitude = 0 - magnitude;
    *p++ = '-';
  }
  p = std::to_chars(p, p + kNumberBytes, magnitude / 1000).ptr;
  const auto fraction = static_cast<unsigned>(magnitude % 1000);
  p[0] = '.';
  p[1] = static_cast<char>('0' + fraction / 100);
  p[2] = static_cast<char>('0' + fraction / 10 % 10);
  p[3] = static_cast<char>('0' + fraction % 10);
  at_ = p + 4;
}

void JsonWriter::Quoted(std::string_view text) {
  Reserve(text.size() + 2);
  char* const p = at_;
  if (!CopyPlain(text, p + 1)) {
    std::string quoted;
    json::AppendQuoted(quoted, text);
    Raw(quoted);
    return;
  }
  p[0] = '"';
  p[text.size() + 1] = '"';
  at_ += text.size() + 2;
}

void ArgKeys::Spell(StringId key) {
  if (Index(key) >= number_.size()) number_.resize(Index(key) + 1);
  Key& spelled = keys_.emplace_back();
  number_[Index(key)] = static_cast<uint32_t>(keys_.size());
  std::string_view text = strings_.View(key);
  spelled.is_outside = IsChromeField(text);
  if (text.starts_with(kFieldPrefix)) text.remove_prefix(1);
  spelled.is_id = spelled.is_outside && text == "id";
  spelled.text = ',';
  json::AppendQuoted(spelled.text, text);
  spelled.text += ':';
}

void JsonWriter::Arguments(std::span<const Arg> args, ArgKeys& keys, const int64_t* id,
                           std::span<const AddedArg> added, bool new_id) {
  const StringTable& strings = keys.strings();
  bool id_kept = false;
  size_t inside = 0;
  for (const Arg& arg : args) {
    const ArgKeys::Key& key = keys.Of(arg.key);
    if (!key.is_outside) {
      ++inside;
      continue;
    }
    Raw(key.text);
    if (key.is_id && new_id && id != nullptr) {
      Quoted(std::to_string(*id));
    } else {
      Value(arg.value, strings);
    }
    id_kept |= key.is_id;
  }
  if (id != nullptr && !id_kept) {
    Raw(",\"id\":");
    Integer(*id);
  }
  if (inside == 0 && added.empty()) return;
  Raw(",\"args\":{");
  size_t comma = 1;  // of the first there is none
  for (const Arg& arg : args) {
    const ArgKeys::Key& key = keys.Of(arg.key);
    if (key.is_outside) continue;
    Raw(std::string_view(key.text).substr(comma));
    comma = 0;
    Value(arg.value, strings);
  }
  for (const auto& [key, value, text] : added) {
    if (comma == 0) Char(',');
    comma = 0;
    Quoted(key);
    Char(':');
    text.empty() ? Value(value, strings) : Quoted(text);
  }
  Char('}');
}

void JsonWriter::Value(const ArgValue& value, const StringTable& strings) {
  switch (value.type) {
    case ArgValue::Type::kString:
      return Quoted(strings.View(value.text));
    case ArgValue::Type::kJson:
      return Raw(strings.View(value.text));
    case ArgValue::Type::kInt:
      return Integer(value.integer);
    case ArgValue::Type::kDouble:
      return Real(value.real);
    case ArgValue::Type::kTrue:
      return Raw("true");
    case ArgValue::Type::kFalse:
      return Raw("false");
    case ArgValue::Type::kNull:
      return Raw("null");
  }
}

}  // namespace trainprof
