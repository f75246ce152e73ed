// Where reading can go on after damage: by what the bytes at a bracket look like.
#pragma once

#include <cstring>
#include <string_view>

#include "trace/formats/io/json_scan.h"

namespace trainprof {

// What these must see of the bytes after a bracket.
inline constexpr ptrdiff_t kLookAhead = 64;

// A '{', then a key that events begin with. Arguments begin otherwise, or stand after a ':'.
inline bool LooksLikeEvent(const char* p) {
  const char* key = json::SkipSpace(p + 1);
  for (std::string_view start : {"\"ph\"", "\"name\"", "\"cat\"", "\"pid\"", "\"tid\"", "\"ts\""}) {
    if (std::strncmp(key, start.data(), start.size()) == 0) return true;
  }
  return false;
}

// A ']', then a member that kineto writes after the events, or the end of the object.
inline bool LooksLikeEndOfList(const char* p) {
  const char* next = json::SkipSpace(p + 1);
  if (*next != ',') return false;
  next = json::SkipSpace(next + 1);
  for (std::string_view start : {"\"traceName\"", "\"displayTimeUnit\"", "\"baseTimeNanoseconds\"",
                                 "\"deviceProperties\"", "\"distributedInfo\"", "\"otherData\""}) {
    if (std::strncmp(next, start.data(), start.size()) == 0) return true;
  }
  return false;
}

}  // namespace trainprof
