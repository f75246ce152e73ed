// Shapes are interned by content; values are packed into 32-bit words behind their shape's number.
#include "trace/tables/args.h"

#include <bit>
#include <cstring>

#include "trace/base/large_columns.h"

namespace trainprof {
namespace {

constexpr size_t kFirstShapeSlots = 256;  // the corpus holds 20 to 60 shapes a file

uint64_t Mix(uint64_t hash, uint64_t value) {
  return (std::rotl(hash, 23) ^ value) * 0x9E3779B97F4A7C15ull;
}

}  // namespace

// Word 0 belongs to nobody, so that ArgsId 0 can mean "none".
ArgsTable::ArgsTable() : words_{0}, shape_begin_{0}, shape_slots_(kFirstShapeSlots, 0) {
  recent_shapes_.fill(UINT32_MAX);
}

// Without a branch: the two enumerations differ in integers alone.
ArgsTable::Stored ArgsTable::StoredAs(const ArgValue& value) {
  using Type = ArgValue::Type;
  static_assert(static_cast<int>(Type::kInt) == static_cast<int>(Stored::kInt32));
  static_assert(static_cast<int>(Type::kNull) + 1 == static_cast<int>(Stored::kNull));
  const bool is_large =
      value.type == Type::kInt && value.integer != static_cast<int32_t>(value.integer);
  return static_cast<Stored>(static_cast<int>(value.type) + (value.type > Type::kInt || is_large));
}

bool ArgsTable::HasShape(uint32_t shape, std::span<const Arg> args) const {
  const uint32_t first = shape_begin_[shape];
  if (shape_begin_[shape + 1] - first != args.size()) return false;
  for (size_t i = 0; i < args.size(); ++i) {
    const Slot& slot = slots_[first + i];
    if (slot.key != args[i].key || slot.stored != StoredAs(args[i].value)) return false;
  }
  return true;
}

// The shape that events with the same ends had last, nearly always; else by its hash.
uint32_t ArgsTable::ShapeOf(std::span<const Arg> args) {
  const size_t ends = Index(args.front().key) + 3 * Index(args.back().key) + 7 * args.size();
  uint32_t& recent = recent_shapes_[ends % recent_shapes_.size()];
  if (recent >= shape_hash_.size() || !HasShape(recent, args)) recent = FindOrAddShape(args);
  return recent;
}

uint32_t ArgsTable::FindOrAddShape(std::span<const Arg> args) {
  uint64_t hash = args.size();
  for (const Arg& arg : args) {
    hash = Mix(hash, Index(arg.key) << 8 | static_cast<uint64_t>(StoredAs(arg.value)));
  }
  size_t mask = shape_slots_.size() - 1;
  size_t at = (hash >> 32) & mask;
  for (; shape_slots_[at] != 0; at = (at + 1) & mask) {
    const uint32_t shape = shape_slots_[at] - 1;
    if (shape_hash_[shape] == hash && HasShape(shape, args)) return shape;
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
  static constexpr size_t kWords[] = {1, 1, 1, 2, 2, 0, 0, 0};  // by Stored
  const size_t first = words_.size();
  const uint32_t shape = ShapeOf(args);
  // Room for the largest; both words of each value are written, those that count are kept.
  words_.resize(first + 1 + 2 * args.size());
  uint32_t* word = words_.data() + first;
  *word++ = shape;
  for (const Arg& arg : args) {
    const ArgValue& value = arg.value;
    const uint64_t bits = value.type == ArgValue::Type::kInt ? static_cast<uint64_t>(value.integer)
                          : value.type == ArgValue::Type::kDouble
                              ? std::bit_cast<uint64_t>(value.real)
                              : Index(value.text);
    word[0] = static_cast<uint32_t>(bits);
    word[1] = static_cast<uint32_t>(bits >> 32);
    word += kWords[static_cast<size_t>(StoredAs(value))];
  }
  words_.resize(static_cast<size_t>(word - words_.data()));
  return ArgsId{static_cast<uint32_t>(first)};
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

void ArgsTable::Copy(ArgsId id, std::vector<Arg>& args) const {
  if (id == kNoArgs) return args.clear();
  const uint32_t shape = words_[Index(id)];
  args.resize(shape_begin_[shape + 1] - shape_begin_[shape]);
  auto next = args.begin();
  ForEach(id, [&](const Arg& arg) { *next++ = arg; });
}

std::optional<ArgValue> ArgsTable::Find(ArgsId id, StringId key) const {
  std::optional<ArgValue> found;
  ForEach(id, [&](const Arg& arg) {
    if (!found && arg.key == key) found = arg.value;
  });
  return found;
}

void ArgsTable::ExpectTimes(double times) {
  ReserveLarge(words_, static_cast<size_t>(static_cast<double>(words_.size()) * times));
}

void ArgsTable::ReturnRoom() { trainprof::ReturnRoom(words_); }

size_t ArgsTable::size_bytes() const {
  return words_.size() * sizeof(uint32_t) + slots_.size() * sizeof(Slot) +
         shape_begin_.size() * sizeof(uint32_t) + shape_hash_.size() * sizeof(uint64_t);
}

}  // namespace trainprof
