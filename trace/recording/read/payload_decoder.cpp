#include "trace/recording/read/payload_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "trace/recording/read/payload_values.h"

namespace trainprof::recording {
namespace {

// NVTX_PAYLOAD_ENTRY_FLAG_*
constexpr uint32_t kPointer = 1 << 1;
constexpr uint32_t kElsewhere = kPointer | 1 << 2 | 1 << 3;  // offsets from base, from here
constexpr uint32_t kArrayMask = 7 << 4;
constexpr uint32_t kFixedSize = 1 << 4;
constexpr uint32_t kZeroTerminated = 2 << 4;
constexpr uint32_t kLengthIndex = 3 << 4;
constexpr uint32_t kHide = 1 << 9;

constexpr uint32_t kStaticSchema = 1;   // NVTX_PAYLOAD_SCHEMA_TYPE_*
constexpr uint32_t kDynamicSchema = 2;  // unions are not read
constexpr uint64_t kReferenced = 1022;  // NVTX_TYPE_PAYLOAD_SCHEMA_REFERENCED, _RAW
constexpr uint64_t kRaw = 1023;

constexpr int kMostDepth = 8;
constexpr uint64_t kMostFieldsOfPayload = 1024;

size_t AlignUp(size_t at, size_t alignment) { return (at + alignment - 1) / alignment * alignment; }

bool IsIntegral(PayloadValueKind kind) {
  return kind == PayloadValueKind::kSigned || kind == PayloadValueKind::kUnsigned;
}

bool IsRead(const PayloadSchema& schema) {
  return schema.type == kStaticSchema || schema.type == kDynamicSchema;
}

}  // namespace

void PayloadDecoder::Decode(uint32_t domain, uint64_t schema, std::string_view bytes,
                            std::vector<Arg>& args) {
  domain_ = domain;
  args_ = &args;
  budget_ = kMostFieldsOfPayload;
  malformed_ = false;
  Scope scope;
  scope.bytes = bytes;
  scope.values.resize(1);
  const auto it = types_.schemas.find(KeyOfPayloadType(domain, schema));
  const PayloadValueType value = PayloadValueTypeOf(schema);
  if (it != types_.schemas.end()) {
    if (IsRead(it->second)) {
      ReadFields(scope, it->second);
    } else {
      Unread();
    }
  } else if (schema == kRaw) {
    Add(scope, "payload", TextValue(HexBytesOf(bytes)));
  } else if (value.kind == PayloadValueKind::kText) {
    ReadText(scope, "payload", bytes.size() / value.bytes, value.bytes);
  } else if (value.kind != PayloadValueKind::kNone) {
    if (bytes.size() > value.bytes && bytes.size() % value.bytes == 0) {
      ReadNumbers(scope, schema, "payload", bytes.size() / value.bytes);
    } else {
      ReadOne(scope, schema, "payload");
    }
  } else if (schema != kReferenced) {
    builder_.quality().Count("unknown_payload_schema", QualitySeverity::kWarning, 1,
                             "structured payloads whose schema is not in the recording; left out");
  }
  if (malformed_) {
    builder_.quality().Count("malformed_payload", QualitySeverity::kWarning, 1,
                             "structured payloads that are shorter than their schema says");
  }
}

bool PayloadDecoder::ReadFields(Scope& scope, const PayloadSchema& schema) {
  bool placed = true;
  size_t end = 0;
  for (size_t i = 0; i < schema.fields.size(); ++i) {
    const PayloadField& field = schema.fields[i];
    scope.values.resize(i + 1);
    if (!Spend()) return false;
    if (i == 0 || field.offset != 0) {
      scope.at = field.offset;
    } else if (placed) {
      const uint32_t natural = AlignmentOf(field);
      scope.at =
          AlignUp(scope.at, schema.packing == 0 ? natural : std::min(natural, schema.packing));
    } else {
      Unread();
      continue;
    }
    const bool outer_hidden = scope.hidden;
    scope.hidden = outer_hidden || (field.flags & kHide) != 0;
    placed =
        ReadField(scope, field, field.name.empty() ? "field " + std::to_string(i) : field.name);
    scope.hidden = outer_hidden;
    end = std::max(end, scope.at);
  }
  scope.at = end;
  return placed;
}

bool PayloadDecoder::ReadField(Scope& scope, const PayloadField& field, const std::string& name) {
  if ((field.flags & kElsewhere) != 0) {
    Unread();
    std::string_view address;
    return (field.flags & kElsewhere) == kPointer && Take(scope, sizeof(void*), &address);
  }
  const PayloadValueType value = PayloadValueTypeOf(field.type);
  if (value.kind == PayloadValueKind::kText) {
    const uint32_t array = field.flags & kArrayMask;
    // A length of 0 may mean a pointer, and an array of strings is none of NCCL's: not read.
    if (array == kZeroTerminated ? field.detail != 0 : array != kLengthIndex && field.detail == 0) {
      return Unread();
    }
    if (array == 0) {
      return ReadText(scope, name, field.detail, value.bytes);
    }
    return ReadArray(scope, field, name);
  }
  if ((field.flags & kArrayMask) != 0) return ReadArray(scope, field, name);
  return ReadOne(scope, field.type, name);
}

bool PayloadDecoder::ReadOne(Scope& scope, uint64_t type, const std::string& name) {
  const PayloadTypeKey key = KeyOfPayloadType(domain_, type);
  std::string_view bytes;
  if (types_.schemas.count(key) != 0) return ReadNested(scope, key, name);
  if (const auto it = types_.enums.find(key); it != types_.enums.end()) {
    const uint32_t size = it->second.value_bytes;
    if (size == 0 || size > 8) return Unread();
    if (!Take(scope, size, &bytes)) return false;
    scope.values.back() = IntegerOf(bytes, false);
    Add(scope, name, NameOf(it->second, *scope.values.back()));
    return true;
  }
  const PayloadValueType value = PayloadValueTypeOf(type);
  if (value.kind == PayloadValueKind::kNone) return Unread();
  if (!Take(scope, value.bytes, &bytes)) return false;
  if (IsIntegral(value.kind) && !scope.values.empty()) {
    scope.values.back() = IntegerOf(bytes, value.kind == PayloadValueKind::kSigned);
  }
  Add(scope, name, NumberOf(type, bytes));
  return true;
}

std::optional<uint64_t> PayloadDecoder::LengthOf(const Scope& scope,
                                                 const PayloadField& field) const {
  const PayloadValueType value = PayloadValueTypeOf(field.type);
  switch (field.flags & kArrayMask) {
    case kFixedSize:
      return field.detail;
    case kLengthIndex:
      if (field.detail + size_t{1} >= scope.values.size()) return std::nullopt;
      return scope.values[field.detail];
    case kZeroTerminated: {
      if (value.bytes == 0) return std::nullopt;
      uint64_t length = 0;
      const std::string zero(value.bytes, '\0');
      while (scope.at + (length + 1) * value.bytes <= scope.bytes.size()) {
        if (scope.bytes.substr(scope.at + length * value.bytes, value.bytes) == zero) break;
        ++length;
      }
      return length + 1;  // with the zero, which must be there
    }
    default:
      return std::nullopt;
  }
}

bool PayloadDecoder::ReadArray(Scope& scope, const PayloadField& field, const std::string& name) {
  const std::optional<uint64_t> length = LengthOf(scope, field);
  if (!length) return Unread();
  const PayloadTypeKey key = KeyOfPayloadType(domain_, field.type);
  if (types_.schemas.count(key) != 0) return ReadRepeated(scope, key, name, *length);
  const PayloadValueType value = PayloadValueTypeOf(field.type);
  if (value.kind == PayloadValueKind::kNone) return Unread();
  if (value.kind == PayloadValueKind::kText || IsCharacterType(field.type)) {
    return ReadText(scope, name, *length, value.bytes);
  }
  return ReadNumbers(scope, field.type, name, *length);
}

bool PayloadDecoder::ReadNumbers(Scope& scope, uint64_t type, const std::string& name,
                                 uint64_t length) {
  const PayloadValueType value = PayloadValueTypeOf(type);
  std::string_view bytes;
  if (length > scope.bytes.size() || !Take(scope, length * value.bytes, &bytes)) {
    malformed_ = true;
    return false;
  }
  if (value.kind == PayloadValueKind::kHex) {
    Add(scope, name, TextValue(HexBytesOf(bytes)));
    return true;
  }
  std::string text = "[";
  for (size_t i = 0; i < bytes.size(); i += value.bytes) {
    const std::string_view one = bytes.substr(i, value.bytes);
    if (i != 0) text += ',';
    if (value.kind == PayloadValueKind::kFloat) {
      const double real = FloatOf(type, one);
      text += std::isfinite(real) ? fmt::format("{}", real) : fmt::format("\"{}\"", real);
    } else if (value.kind == PayloadValueKind::kSigned) {
      text += std::to_string(static_cast<int64_t>(IntegerOf(one, true)));
    } else {
      text += std::to_string(IntegerOf(one, false));
    }
  }
  text += ']';
  Add(scope, name, {.type = ArgValue::Type::kJson, .text = builder_.Intern(text)});
  return true;
}

bool PayloadDecoder::ReadText(Scope& scope, const std::string& name, uint64_t length,
                              uint32_t unit_bytes) {
  std::string_view bytes;
  if (length > scope.bytes.size() || !Take(scope, length * unit_bytes, &bytes)) {
    malformed_ = true;
    return false;
  }
  Add(scope, name, TextValue(Utf8Of(bytes, unit_bytes)));
  return true;
}

bool PayloadDecoder::ReadNested(Scope& scope, const PayloadTypeKey& key, const std::string& name) {
  const PayloadSchema& schema = types_.schemas.at(key);
  if (!IsRead(schema) || scope.depth == kMostDepth) return Unread();
  Scope inner;
  inner.prefix = scope.prefix + name + ".";
  inner.depth = scope.depth + 1;
  inner.hidden = scope.hidden;
  if (schema.static_bytes != 0) {
    if (!Take(scope, schema.static_bytes, &inner.bytes)) return false;
    ReadFields(inner, schema);
    return true;
  }
  if (scope.at > scope.bytes.size()) {
    malformed_ = true;
    return false;
  }
  inner.bytes = scope.bytes.substr(scope.at);
  if (!ReadFields(inner, schema)) return false;
  scope.at += AlignUp(inner.at, AlignmentOf(key, schema));
  return true;
}

bool PayloadDecoder::ReadRepeated(Scope& scope, const PayloadTypeKey& key, const std::string& name,
                                  uint64_t length) {
  for (uint64_t i = 0; i < length; ++i) {
    if (!Spend()) return false;
    if (!ReadNested(scope, key, name + "[" + std::to_string(i) + "]")) return false;
  }
  return true;
}

uint32_t PayloadDecoder::AlignmentOf(const PayloadField& field) {
  if ((field.flags & kElsewhere) != 0) return sizeof(void*);
  const PayloadTypeKey key = KeyOfPayloadType(domain_, field.type);
  if (const auto it = types_.schemas.find(key); it != types_.schemas.end()) {
    return AlignmentOf(key, it->second);
  }
  if (const auto it = types_.enums.find(key); it != types_.enums.end()) {
    return std::clamp<uint32_t>(it->second.value_bytes, 1, 16);
  }
  return std::max<uint32_t>(PayloadValueTypeOf(field.type).bytes, 1);
}

// A schema within itself, which no structure is, counts as 1 there.
uint32_t PayloadDecoder::AlignmentOf(const PayloadTypeKey& key, const PayloadSchema& schema) {
  const auto [it, is_new] = alignments_.try_emplace(key, 1);
  if (!is_new || alignment_depth_ == kMostDepth) return it->second;
  ++alignment_depth_;
  for (const PayloadField& field : schema.fields) {
    it->second = std::max(it->second, AlignmentOf(field));
  }
  --alignment_depth_;
  if (schema.packing != 0) it->second = std::min(it->second, schema.packing);
  return it->second;
}

ArgValue PayloadDecoder::NameOf(const PayloadEnum& type, uint64_t value) {
  std::string flags;
  uint64_t left = value;
  for (const PayloadEnum::Entry& entry : type.entries) {
    if (entry.value == value) return TextValue(entry.name);
    if (!entry.is_flag || entry.value == 0 || (value & entry.value) != entry.value) continue;
    flags += (flags.empty() ? "" : "|") + entry.name;
    left &= ~entry.value;
  }
  if (!flags.empty() && left == 0) return TextValue(flags);
  if (type.value_bytes < 8 || static_cast<int64_t>(value) >= 0) {
    return {.type = ArgValue::Type::kInt, .integer = static_cast<int64_t>(value)};
  }
  return {.type = ArgValue::Type::kJson, .text = builder_.Intern(std::to_string(value))};
}

ArgValue PayloadDecoder::NumberOf(uint64_t type, std::string_view bytes) {
  const PayloadValueKind kind = PayloadValueTypeOf(type).kind;
  if (kind == PayloadValueKind::kHex) return TextValue(HexNumberOf(bytes));
  if (kind == PayloadValueKind::kFloat) {
    return {.type = ArgValue::Type::kDouble, .real = FloatOf(type, bytes)};
  }
  const bool is_signed = kind == PayloadValueKind::kSigned;
  const uint64_t value = IntegerOf(bytes, is_signed);
  if (is_signed || static_cast<int64_t>(value) >= 0) {
    return {.type = ArgValue::Type::kInt, .integer = static_cast<int64_t>(value)};
  }
  // Beyond int64: kept exactly, as text of a number.
  return {.type = ArgValue::Type::kJson, .text = builder_.Intern(std::to_string(value))};
}

bool PayloadDecoder::Take(Scope& scope, uint64_t bytes, std::string_view* out) {
  if (scope.at > scope.bytes.size() || bytes > scope.bytes.size() - scope.at) {
    malformed_ = true;
    return false;
  }
  *out = scope.bytes.substr(scope.at, bytes);
  scope.at += bytes;
  return true;
}

void PayloadDecoder::Add(const Scope& scope, const std::string& name, const ArgValue& value) {
  if (scope.hidden) return;
  const auto taken = [&](StringId key) {
    return std::any_of(args_->begin(), args_->end(), [&](const Arg& a) { return a.key == key; });
  };
  const std::string full = scope.prefix + name;
  StringId key = builder_.Intern(full);
  for (int i = 2; taken(key); ++i) key = builder_.Intern(full + " (" + std::to_string(i) + ")");
  args_->push_back({key, value});
}

ArgValue PayloadDecoder::TextValue(std::string_view text) {
  return {.type = ArgValue::Type::kString, .text = builder_.Intern(text)};
}

bool PayloadDecoder::Unread() {
  builder_.quality().Count(
      "unread_payload_field", QualitySeverity::kInfo, 1,
      "fields of structured payloads that are pointers, unions or of unknown types; left out");
  return false;
}

bool PayloadDecoder::Spend() {
  if (budget_ == 0) return Unread();
  --budget_;
  return true;
}

}  // namespace trainprof::recording
