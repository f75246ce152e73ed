// Numbers and strings as JSON text.
#include "trace/formats/chrome/json_writer.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/io/json_text.h"

namespace trainprof {
namespace {

using Block [[gnu::vector_size(16)]] = uint8_t;

// Where a character has to be escaped, a quote, a backslash, or one below the space, bits are set.
Block EscapedIn(Block block) {
  return std::bit_cast<Block>((block == uint8_t{'"'}) | (block == uint8_t{'\\'}) |
                              (block < uint8_t{' '}));
}

bool AnyIn(Block block) {
  const auto words = std::bit_cast<std::array<uint64_t, 2>>(block);
  return (words[0] | words[1]) != 0;
}

// Copies a text in which nothing has to be escaped; false where something does, and what was copied means nothing.
bool CopyPlain(std::string_view text, char* to) {
  const auto copy = [&](size_t at, size_t size) {
    // Shorter than a block: filled up with spaces.
    Block block = Block{} + uint8_t{' '};
    std::memcpy(&block, text.data() + at, size);
    std::memcpy(to + at, &block, size);
    return EscapedIn(block);
  };
  Block escaped{};
  if (text.size() >= sizeof(Block)) {
    for (size_t at = 0; at + sizeof(Block) < text.size(); at += sizeof(Block)) {
      escaped |= copy(at, sizeof(Block));
    }
    escaped |= copy(text.size() - sizeof(Block), sizeof(Block));  // overlaps the one before
  } else if (text.size() >= 8) {
    escaped = copy(0, 8) | copy(text.size() - 8, 8);
  } else if (text.size() >= 4) {
    escaped = copy(0, 4) | copy(text.size() - 4, 4);
  } else {
    for (size_t at = 0; at < text.size(); ++at) escaped |= copy(at, 1);
  }
  return !AnyIn(escaped);
}

// The digits of numbers below 1000, three each.
constexpr auto kThreeDigits = [] {
  std::array<char, 3000> digits{};
  for (size_t i = 0; i < 1000; ++i) {
    digits[3 * i] = static_cast<char>('0' + i / 100);
    digits[3 * i + 1] = static_cast<char>('0' + i / 10 % 10);
    digits[3 * i + 2] = static_cast<char>('0' + i % 10);
  }
  return digits;
}();

char* PutThreeDigits(uint64_t number, char* to) {
  std::memcpy(to, &kThreeDigits[3 * number], 3);
  return to + 3;
}

}  // namespace

// By blocks: most texts are short, and memcpy of a size that varies costs more than they do. Not inline: of a choice of
// two literals GCC 12 knows the size of both, and warns of words that are never read there.
[[gnu::noinline]] void JsonWriter::CopyBytes(const char* from, size_t size, char* to) {
  constexpr size_t kBlock = sizeof(Block);
  constexpr size_t kWord = sizeof(uint64_t);
  if (size >= kBlock && size <= 8 * kBlock) {
    for (size_t at = 0; at + kBlock < size; at += kBlock) std::memcpy(to + at, from + at, kBlock);
    std::memcpy(to + size - kBlock, from + size - kBlock, kBlock);  // overlaps the one before
  } else if (size >= kWord && size < kBlock) {
    std::memcpy(to, from, kWord);
    std::memcpy(to + size - kWord, from + size - kWord, kWord);
  } else if (size > 0) {  // of nothing both may be null
    std::memcpy(to, from, size);
  }
}

// Not inline: what is written into room that is there stays short.
[[gnu::noinline]] void JsonWriter::Grow(size_t more) {
  const size_t written = size();
  const size_t needed = written + more;
  buffer_.resize(needed + needed / 8 + kNumberBytes);  // its capacity doubles
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
  // What is known to have three digits comes from a table; the rest of a time is short then.
  constexpr uint64_t kThousand = 1000;
  const uint64_t us = magnitude / kThousand;
  if (us < kThousand * kThousand) {
    p = std::to_chars(p, p + kNumberBytes, us).ptr;
  } else {
    p = std::to_chars(p, p + kNumberBytes, us / (kThousand * kThousand)).ptr;
    p = PutThreeDigits(us / kThousand % kThousand, p);
    p = PutThreeDigits(us % kThousand, p);
  }
  *p++ = '.';
  at_ = PutThreeDigits(magnitude % kThousand, p);
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
  if (id == nullptr && Inside(args, keys, added, true)) return;
  const StringTable& strings = keys.strings();
  bool id_kept = false;
  for (const Arg& arg : args) {
    const ArgKeys::Key& key = keys.Of(arg.key);
    if (!key.is_outside) continue;
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
  Inside(args, keys, added, false);
}

bool JsonWriter::Inside(std::span<const Arg> args, ArgKeys& keys, std::span<const AddedArg> added,
                        bool all) {
  const size_t begin = size();
  Raw(",\"args\":{");
  size_t comma = 1;  // of the first there is none
  for (const Arg& arg : args) {
    const ArgKeys::Key& key = keys.Of(arg.key);
    if (key.is_outside) {
      if (!all) continue;
      at_ = buffer_.data() + begin;
      return false;
    }
    Raw(std::string_view(key.text).substr(comma));
    comma = 0;
    Value(arg.value, keys.strings());
  }
  for (const auto& [key, value, text] : added) {
    if (comma == 0) Char(',');
    comma = 0;
    Quoted(key);
    Char(':');
    text.empty() ? Value(value, keys.strings()) : Quoted(text);
  }
  if (comma == 0) {
    Char('}');
  } else {
    at_ = buffer_.data() + begin;
  }
  return true;
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
