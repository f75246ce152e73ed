// Appends JSON to a growing buffer: literals are copied, numbers formatted by std::to_chars.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
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

// Keys of arguments as they are written, each spelled once.
class ArgKeys {
 public:
  struct Key {
    bool is_outside = false;  // a field of the event, beside "args"
    bool is_id = false;       // the field "id"
    std::string text;         // a comma, the quoted key, a colon
  };

  // Keeps a reference; the table may grow.
  explicit ArgKeys(const StringTable& strings) : strings_(strings) {}

  const StringTable& strings() const { return strings_; }
  // Valid until the next call.
  const Key& Of(StringId key) {
    if (Index(key) >= number_.size() || number_[Index(key)] == 0) Spell(key);
    return keys_[number_[Index(key)] - 1];
  }

 private:
  void Spell(StringId key);

  const StringTable& strings_;
  std::vector<Key> keys_;
  std::vector<uint32_t> number_;  // by StringId: of keys_, from 1; 0: not spelled yet
};

class JsonWriter {
 public:
  JsonWriter() = default;
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  std::string_view text() const { return {buffer_.data(), size()}; }
  size_t size() const { return static_cast<size_t>(at_ - buffer_.data()); }
  void Clear() { at_ = buffer_.data(); }
  // Begins a text in the room of that string; what the string held goes.
  void Begin(std::string& room) {
    buffer_.swap(room);
    buffer_.reserve(most_);
    at_ = buffer_.data();
    end_ = at_ + buffer_.size();
  }
  // What was written since, without a copy.
  void End(std::string& text) {
    most_ = std::max(most_, size());
    buffer_.resize(size());
    buffer_.swap(text);
    buffer_.clear();
    at_ = end_ = buffer_.data();
  }

  void Raw(std::string_view text) {
    Reserve(text.size());
    if (__builtin_constant_p(text.size())) {
      std::memcpy(at_, text.data(), text.size());
    } else {
      CopyBytes(text.data(), text.size(), at_);
    }
    at_ += text.size();
  }
  void Char(char c) {
    Reserve(1);
    *at_++ = c;
  }
  void Integer(int64_t value) {
    Reserve(kNumberBytes);
    at_ = std::to_chars(at_, at_ + kNumberBytes, value).ptr;
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
  void Arguments(std::span<const Arg> args, ArgKeys& keys, const int64_t* id,
                 std::span<const AddedArg> added = {}, bool new_id = false);
  void Value(const ArgValue& value, const StringTable& strings);

 private:
  static constexpr size_t kNumberBytes = 32;

  // ,"args":{...}, where there is something to say. `all`: where a field stands outside, false, and nothing is written.
  bool Inside(std::span<const Arg> args, ArgKeys& keys, std::span<const AddedArg> added, bool all);
  static void CopyBytes(const char* from, size_t size, char* to);

  void Reserve(size_t more) {
    if (static_cast<size_t>(end_ - at_) < more) [[unlikely]]
      Grow(more);
  }
  void Grow(size_t more);

  std::string buffer_;         // the text, and room behind it
  char* at_ = buffer_.data();  // where the text ends
  char* end_ = at_;
  size_t most_ = 0;  // of a text so far
};

}  // namespace trainprof
