// NVTX's attributes of an event (FORMAT.md, "Records") as arguments: category, colour, payload.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/recording/wire/format.h"

namespace trainprof::recording {

class AttributeDecoder {
 public:
  // Keeps references.
  AttributeDecoder(const SegmentScan& scan, TraceBuilder& builder)
      : scan_(scan), builder_(builder) {}

  // Appends to `args` what the words say; none say nothing.
  void Decode(uint32_t domain, std::span<const uint64_t> words, std::vector<Arg>& args);

 private:
  Arg CategoryArg(uint32_t domain, uint32_t category);
  ArgValue Payload(PayloadType type, uint64_t bits);

  const SegmentScan& scan_;
  TraceBuilder& builder_;
};

}  // namespace trainprof::recording
