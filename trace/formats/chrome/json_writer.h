// Appends JSON to a growing buffer: literals are copied, numbers formatted by std::to_chars.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/base/string_table.h"
#include "trace/tables/args.h"

namespace trainprof {

// An argument that an export adds; `text`, where it is not empty, stands for the value.
struct AddedArg {
  std::string_view key;
  ArgValue value{};
  std::string_view text{};
};

class JsonWriter {
 public:
  std::string_view text() const { return {buffer_.data(), size_}; }
  size_t size() const { return size_; }
  void Clear() { size_ = 0; }

  void Raw(std::string_view text) {
    Reserve(text.size());
    std::memcpy(buffer_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  void Char(char c) {
    Reserve(1);
    buffer_[size_++] = c;
  }
  void Integer(int64_t value) {
    Reserve(kNumberBytes);
    size_ = static_cast<size_t>(std::to_chars(Here(), Here() + kNumberBytes, value).ptr -
                                buffer_.data());
  }
  // Shortest text that reads back as the same double, always with a '.' or an exponent, so that it
  // never reads back as an integer. Not for NaN and infinities.
  void Real(double value);
  // Nanoseconds as microseconds with three decimals.
  void Microseconds(int64_t ns);
  void Quoted(std::string_view text);
  // ,"<field>":... for what stood outside "args", then ,"id":... and ,"args":{...}, each when there
  // is something to say. `id` may be null; `added` follow the others inside "args". An id that
  // stood outside "args" as a text is written as it was, or with `new_id` as the text of `id`.
  void Arguments(std::span<const Arg> args, const StringTable& strings, const int64_t* id,
                 std::span<const AddedArg> added = {}, bool new_id = false);
  void Value(const ArgValue& value, const StringTable& strings);

 private:
  static constexpr size_t kNumberBytes = 32;

  char* Here() { return buffer_.data() + size_; }
  void Reserve(size_t more) {
    if (buffer_.size() - size_ < more) buffer_.resize((buffer_.size() + more) * 2);
  }

  std::vector<char> buffer_;
  size_t size_ = 0;
};

}  // namespace trainprof
