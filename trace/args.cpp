// Shapes are interned by content; values are packed into 32-bit words behind their shape's number.
#include "trace/args.h"

#include <bit>
#include <cstring>

namespace trainprof {
namespace {

constexpr size_t kFirstShapeSlots = 256;  // the corpus holds 20 to 60 shapes a file

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (std::rotl(hash, 23) ^ value) * 0x9E3779B97F4A7C15ull;
}

}  // namespace

// Word 0 belongs to nobody, so that ArgsId 0 can mean "none".
ArgsTable::ArgsTable() : words_{0}, shape_begin_{0}, shape_slots_(kFirstShapeSlots, 0) {}

ArgsTable::Stored ArgsTable::StoredAs(const ArgValue& value) {
  switch (value.type) {
    case ArgValue::Type::kString:
      return Stored::kString;
    case ArgValue::Type::kJson:
      return Stored::kJson;
    case ArgValue::Type::kInt:
      return value.integer == static_cast<int32_t>(value.integer) ? Stored::kInt32 : Stored::kInt64;
    case ArgValue::Type::kDouble:
      return Stored::kDouble;
    case ArgValue::Type::kTrue:
      return Stored::kTrue;
    case ArgValue::Type::kFalse:
      return Stored::kFalse;
    case ArgValue::Type::kNull:
      break;
  }
  return Stored::kNull;
}

uint32_t ArgsTable::ShapeOf(std::span<const Arg> args) {
  uint64_t hash = args.size();
  for (const Arg& arg : args) {
    hash = Mix(hash, Index(arg.key) << 8 | static_cast<uint64_t>(StoredAs(arg.value)));
  }
  const auto same = [&](uint32_t shape) {
    if (shape_hash_[shape] != hash) return false;
    const uint32_t first = shape_begin_[shape];
    if (shape_begin_[shape + 1] - first != args.size()) return false;
    for (size_t i = 0; i < args.size(); ++i) {
      const Slot& slot = slots_[first + i];
      if (slot.key != args[i].key || slot.stored != StoredAs(args[i].value)) return false;
    }
    return true;
  };
  size_t mask = shape_slots_.size() - 1;
  size_t at = (hash >> 32) & mask;
  for (; shape_slots_[at] != 0; at = (at + 1) & mask) {
    if (same(shape_slots_[at] - 1)) return shape_slots_[at] - 1;
  }
  const auto shape = static_cast<uint32_t>(shape_hash_.size());
  for (const Arg& arg : args) slots_.push_back({arg.key, StoredAs(arg.value)});
  shape_begin_.push_back(static_cast<uint32_t>(slots_.size()));
  shape_hash_.push_back(hash);
  shape_slots_[at] = shape + 1;
  if (shape_hash_.size() * 2 > shape_slots_.size()) {
    shape_slots_.assign(shape_slots_.size() * 2, 0);
    mask = shape_slots_.size() - 1;
    for (uint32_t i = 0; i < shape_hash_.size(); ++i) {
      size_t slot = (shape_hash_[i] >> 32) & mask;
      while (shape_slots_[slot] != 0) slot = (slot + 1) & mask;
      shape_slots_[slot] = i + 1;
    }
  }
  return shape;
}

ArgsId ArgsTable::Add(std::span<const Arg> args) {
  if (args.empty()) return kNoArgs;
  const ArgsId id{static_cast<uint32_t>(words_.size())};
  words_.push_back(ShapeOf(args));
  const auto push64 = [&](uint64_t v) {
    words_.push_back(static_cast<uint32_t>(v));
    words_.push_back(static_cast<uint32_t>(v >> 32));
  };
  for (const Arg& arg : args) {
    switch (StoredAs(arg.value)) {
      case Stored::kString:
      case Stored::kJson:
        words_.push_back(static_cast<uint32_t>(arg.value.text));
        break;
      case Stored::kInt32:
        words_.push_back(static_cast<uint32_t>(arg.value.integer));
        break;
      case Stored::kInt64:
        push64(static_cast<uint64_t>(arg.value.integer));
        break;
      case Stored::kDouble:
        push64(std::bit_cast<uint64_t>(arg.value.real));
        break;
      case Stored::kTrue:
      case Stored::kFalse:
      case Stored::kNull:
        break;
    }
  }
  return id;
}

ArgValue ArgsTable::Read(Stored stored, const uint32_t*& word) const {
  const auto pop64 = [&] {
    const uint64_t low = *word++;
    return low | static_cast<uint64_t>(*word++) << 32;
  };
  ArgValue value;
  switch (stored) {
    case Stored::kString:
      value.type = ArgValue::Type::kString;
      value.text = StringId{*word++};
      break;
    case Stored::kJson:
      value.type = ArgValue::Type::kJson;
      value.text = StringId{*word++};
      break;
    case Stored::kInt32:
      value.type = ArgValue::Type::kInt;
      value.integer = static_cast<int32_t>(*word++);
      break;
    case Stored::kInt64:
      value.type = ArgValue::Type::kInt;
      value.integer = static_cast<int64_t>(pop64());
      break;
    case Stored::kDouble:
      value.type = ArgValue::Type::kDouble;
      value.real = std::bit_cast<double>(pop64());
      break;
    case Stored::kTrue:
      value.type = ArgValue::Type::kTrue;
      break;
    case Stored::kFalse:
      value.type = ArgValue::Type::kFalse;
      break;
    case Stored::kNull:
      break;
  }
  return value;
}

std::optional<ArgValue> ArgsTable::Find(ArgsId id, StringId key) const {
  std::optional<ArgValue> found;
  ForEach(id, [&](const Arg& arg) {
    if (!found && arg.key == key) found = arg.value;
  });
  return found;
}

size_t ArgsTable::size_bytes() const {
  return words_.size() * sizeof(uint32_t) + slots_.size() * sizeof(Slot) +
         shape_begin_.size() * sizeof(uint32_t) + shape_hash_.size() * sizeof(uint64_t);
}

}  // namespace trainprof
