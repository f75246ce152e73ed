// Numbers and strings as JSON text.
#include "trace/formats/chrome/json_writer.h"

#include <cmath>
#include <string>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/io/json_text.h"

namespace trainprof {
void JsonWriter::Real(double value) {
  if (!std::isfinite(value)) {
    // Reading never makes one; a double computed by a recording could.
    Raw(std::isnan(value) ? "\"NaN\"" : value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
    return;
  }
  Reserve(kNumberBytes + 2);
  char* first = Here();
  char* last = std::to_chars(first, first + kNumberBytes, value).ptr;
  const std::string_view text(first, static_cast<size_t>(last - first));
  size_ += text.size();
  if (text.find_first_of(".e") == std::string_view::npos) Raw(".0");
}

void JsonWriter::Microseconds(int64_t ns) {
  Reserve(kNumberBytes);
  uint64_t magnitude = static_cast<uint64_t>(ns);
  if (ns < 0) {
    magnitude = 0 - magnitude;
    buffer_[size_++] = '-';
  }
  char* p = std::to_chars(Here(), Here() + kNumberBytes, magnitude / 1000).ptr;
  const auto fraction = static_cast<unsigned>(magnitude % 1000);
  p[0] = '.';
  p[1] = static_cast<char>('0' + fraction / 100);
  p[2] = static_cast<char>('0' + fraction / 10 % 10);
  p[3] = static_cast<char>('0' + fraction % 10);
  size_ = static_cast<size_t>(p + 4 - buffer_.data());
}

void JsonWriter::Quoted(std::string_view text) {
  const bool plain = [&] {
    for (char c : text) {
      if (c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ') return false;
    }
    return true;
  }();
  if (!plain) {
    std::string quoted;
    json::AppendQuoted(quoted, text);
    Raw(quoted);
    return;
  }
  Reserve(text.size() + 2);
  char* p = Here();
  *p = '"';
  std::memcpy(p + 1, text.data(), text.size());
  p[text.size() + 1] = '"';
  size_ += text.size() + 2;
}

void JsonWriter::Arguments(std::span<const Arg> args, const StringTable& strings, const int64_t* id,
                           std::span<const AddedArg> added, bool new_id) {
  bool id_kept = false;
  size_t inside = 0;
  for (const Arg& arg : args) {
    const std::string_view key = strings.View(arg.key);
    if (!IsChromeField(key)) {
      ++inside;
      continue;
    }
    Char(',');
    Quoted(key.substr(1));
    Char(':');
    const bool is_id = key.substr(1) == "id";
    if (is_id && new_id && id != nullptr) {
      Quoted(std::to_string(*id));
    } else {
      Value(arg.value, strings);
    }
    id_kept |= is_id;
  }
  if (id != nullptr && !id_kept) {
    Raw(",\"id\":");
    Integer(*id);
  }
  if (inside == 0 && added.empty()) return;
  Raw(",\"args\":{");
  bool first = true;
  for (const Arg& arg : args) {
    std::string_view key = strings.View(arg.key);
    if (IsChromeField(key)) continue;
    if (key.starts_with(kFieldPrefix)) key.remove_prefix(1);
    if (!first) Char(',');
    first = false;
    Quoted(key);
    Char(':');
    Value(arg.value, strings);
  }
  for (const auto& [key, value, text] : added) {
    if (!first) Char(',');
    first = false;
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
