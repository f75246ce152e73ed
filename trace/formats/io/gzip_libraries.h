// What gzip.cpp chooses from, and what both have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "trace/formats/io/gzip.h"

namespace trainprof {

// Gives a stream of either library its input and its room; they count in 32 bits.
template <class Stream>
void Point(Stream& stream, std::string_view bytes, std::span<char> out) {
  constexpr size_t kMost = 1u << 30;
  stream.next_in = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uint32_t>(std::min(bytes.size(), kMost));
  stream.next_out = reinterpret_cast<uint8_t*>(out.data());
  stream.avail_out = static_cast<uint32_t>(std::min(out.size(), kMost));
}

std::unique_ptr<GzipEncoder> MakeZlibEncoder();
std::unique_ptr<GzipDecoder> MakeZlibDecoder();
// Only where TRAINPROF_HAS_ISAL is defined.
std::unique_ptr<GzipEncoder> MakeIsalEncoder();
std::unique_ptr<GzipDecoder> MakeIsalDecoder();

}  // namespace trainprof
