// What a program has said of its structured payloads: schemas and enumerations, as NVTX's payload
// extension has them, in NVTX's numbers (see FORMAT.md, PAYLOAD_SCHEMA).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace trainprof::recording {

struct PayloadField {
  uint64_t type = 0;    // a predefined type, or the number of a schema or enumeration
  uint32_t flags = 0;   // kField...
  uint32_t offset = 0;  // from the structure's beginning; 0 behind the first: by alignment
  uint32_t detail = 0;  // an array's or string's length, or the index of the field that holds it
  std::string name;
};

struct PayloadSchema {
  uint32_t type = 0;
  uint32_t static_bytes = 0;  // 0: unknown
  uint32_t packing = 0;       // the most that a field is aligned to; 0: natural
  std::vector<PayloadField> fields;
};

struct PayloadEnum {
  struct Entry {
    uint64_t value = 0;
    bool is_flag = false;
    std::string name;
  };
  uint32_t value_bytes = 0;
  std::vector<Entry> entries;
};

// Numbers that the program chose hold in one domain, those that the recorder gave in all.
using PayloadTypeKey = std::pair<uint32_t, uint64_t>;  // domain, number
inline constexpr uint64_t kFirstRecorderPayloadType = uint64_t{1} << 32;
constexpr PayloadTypeKey KeyOfPayloadType(uint32_t domain, uint64_t number) {
  if (number >= kFirstRecorderPayloadType) domain = 0;
  return {domain, number};
}

struct PayloadTypes {
  std::map<PayloadTypeKey, PayloadSchema> schemas;
  std::map<PayloadTypeKey, PayloadEnum> enums;
};

}  // namespace trainprof::recording
