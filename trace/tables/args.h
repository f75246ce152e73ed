// The free-form arguments of events, kept whole and small. Events of one kind carry the same keys
// with the same types over and over, so that a "shape" (the keys and types) is stored once and an
// event keeps its shape's number and the bare values: 4 bytes for a string, a small integer or raw
// JSON, 8 for others, none for booleans and null.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "trace/base/ids.h"
#include "trace/base/string_table.h"

namespace trainprof {

struct ArgValue {
  enum class Type : uint8_t { kString, kJson, kInt, kDouble, kTrue, kFalse, kNull };
  Type type = Type::kNull;
  StringId text = kEmptyString;  // kString; kJson: raw JSON text of an array, object or odd literal
  int64_t integer = 0;           // kInt
  double real = 0;               // kDouble

  // Of kDouble and kInt, which a writer of JSON takes for each other.
  double Number() const { return type == Type::kDouble ? real : static_cast<double>(integer); }

  bool operator==(const ArgValue&) const = default;
};

struct Arg {
  StringId key = kEmptyString;
  ArgValue value;

  bool operator==(const Arg&) const = default;
};

class ArgsTable {
 public:
  ArgsTable();

  // Stores one event's arguments in their order. O(count). Empty gives kNoArgs.
  ArgsId Add(std::span<const Arg> args);

  // Calls visit(const Arg&) for each argument in its stored order.
  template <class Visitor>
  void ForEach(ArgsId id, Visitor visit) const;
  // All of them in their stored order instead of what `args` holds.
  void Copy(ArgsId id, std::vector<Arg>& args) const;
  // The first argument of that key.
  std::optional<ArgValue> Find(ArgsId id, StringId key) const;

  size_t size_bytes() const;
  // About so many times the arguments of now will be added in all.
  void ExpectTimes(double times);
  // No more will be added.
  void ReturnRoom();

 private:
  // How a value is stored; kString..kNull as ArgValue::Type, and integers in two sizes.
  enum class Stored : uint8_t { kString, kJson, kInt32, kInt64, kDouble, kTrue, kFalse, kNull };
  struct Slot {
    StringId key;
    Stored stored;
  };
  static Stored StoredAs(const ArgValue& value);
  uint32_t ShapeOf(std::span<const Arg> args);
  bool HasShape(uint32_t shape, std::span<const Arg> args) const;
  uint32_t FindOrAddShape(std::span<const Arg> args);
  ArgValue Read(Stored stored, const uint32_t*& word) const;

  std::vector<uint32_t> words_;        // per event: shape, then its values
  std::vector<Slot> slots_;            // all shapes' slots, one after another
  std::vector<uint32_t> shape_begin_;  // shape i is slots_[shape_begin_[i] .. shape_begin_[i+1])
  std::vector<uint64_t> shape_hash_;
  std::vector<uint32_t> shape_slots_;  // open addressing: shape + 1, 0 is free
  std::array<uint32_t, 64> recent_shapes_;
};

template <class Visitor>
void ArgsTable::ForEach(ArgsId id, Visitor visit) const {
  if (id == kNoArgs) return;
  const uint32_t* word = words_.data() + Index(id);
  const uint32_t shape = *word++;
  for (uint32_t s = shape_begin_[shape]; s < shape_begin_[shape + 1]; ++s) {
    visit(Arg{slots_[s].key, Read(slots_[s].stored, word)});
  }
}

}  // namespace trainprof
