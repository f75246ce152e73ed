#include "trace/recording/read/attribute_decoder.h"

#include <cstring>
#include <string>

namespace trainprof::recording {
namespace {

double AsDouble(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double AsFloat(uint64_t bits) {
  const auto low = static_cast<uint32_t>(bits);
  float value;
  memcpy(&value, &low, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

void AttributeDecoder::Decode(uint32_t domain, std::span<const uint64_t> words,
                              std::vector<Arg>& args) {
  if (words.empty()) return;
  const auto payload_type = static_cast<PayloadType>(words[0] & 0xFF);
  const bool has_color = (words[0] >> 8 & 0xFF) != 0;
  const auto category = static_cast<uint32_t>(words[0] >> 32);
  words = words.subspan(1);
  if (category != 0) args.push_back(CategoryArg(domain, category));
  if (has_color && !words.empty()) {
    args.push_back(
        {builder_.Intern("color"),
         {.type = ArgValue::Type::kInt, .integer = static_cast<int64_t>(words[0] & UINT32_MAX)}});
    words = words.subspan(1);
  }
  if (payload_type != PayloadType::kNone && !words.empty()) {
    args.push_back({builder_.Intern("payload"), Payload(payload_type, words[0])});
  }
}

Arg AttributeDecoder::CategoryArg(uint32_t domain, uint32_t category) {
  Arg arg{builder_.Intern("category"), {}};
  const auto it = scan_.categories.find({domain, category});
  if (it == scan_.categories.end()) {
    arg.value = {.type = ArgValue::Type::kInt, .integer = category};
  } else {
    arg.value = {.type = ArgValue::Type::kString, .text = builder_.Intern(it->second)};
  }
  return arg;
}

ArgValue AttributeDecoder::Payload(PayloadType type, uint64_t bits) {
  ArgValue value;
  value.type = ArgValue::Type::kInt;
  value.integer = static_cast<int64_t>(bits);
  switch (type) {
    case PayloadType::kUint64:
      if (value.integer < 0) {  // beyond int64: kept exactly, as text of a number
        value = {.type = ArgValue::Type::kJson, .text = builder_.Intern(std::to_string(bits))};
      }
      break;
    case PayloadType::kUint32:
      value.integer = static_cast<int64_t>(static_cast<uint32_t>(bits));
      break;
    case PayloadType::kInt32:
      value.integer = static_cast<int32_t>(static_cast<uint32_t>(bits));
      break;
    case PayloadType::kDouble:
      value = {.type = ArgValue::Type::kDouble, .real = AsDouble(bits)};
      break;
    case PayloadType::kFloat:
      value = {.type = ArgValue::Type::kDouble, .real = AsFloat(bits)};
      break;
    default:
      break;
  }
  return value;
}

}  // namespace trainprof::recording
