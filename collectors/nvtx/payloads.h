// NVTX's payload extension, as far as events carry structures of registered schemas. The types are
// ours: the extension's header is younger than the NVTX that some build with.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainprof::collectors {

inline constexpr uint32_t kPayloadExtension = 0xDFBD0009;  // NVTX_PAYLOAD_TYPE_EXT

// nvtxPayloadData_t
struct PayloadData {
  uint64_t schema;
  size_t bytes;
  const void* structure;
};

}  // namespace trainprof::collectors
