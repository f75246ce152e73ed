// write(2) until all is written.
#pragma once

#include <cstdint>
#include <string_view>

namespace trainprof {

// 0, or the errno of what failed. Waits for a descriptor that does not block; a file that would
// pass the limit of the process (ulimit -f) is an error, EFBIG, and no deadly signal. `written`
// counts what came through.
int WriteAll(int fd, std::string_view bytes, uint64_t* written = nullptr);

template <typename T>
std::string_view BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// "; free some space or choose another folder": what to do about a failed write or open, or "".
const char* WhatToDoAboutWriting(int error);

}  // namespace trainprof
