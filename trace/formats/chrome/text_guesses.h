// Which text comes next. The steps of a training run repeat, and with them the texts of their
// events in their order: comparing with the text that came here the last time saves looking for its
// end, hashing it and looking it up. On real traces five texts in six are guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trace/base/ids.h"

namespace trainprof {

class TextGuesses {
 public:
  // The guess for what follows the texts before it in a place of that kind; kEmptyString at first.
  // Whoever finds another text there assigns it. Kinds may share a guess, never a table of which
  // one may hold what the other must not.
  StringId& After(uint32_t kind, StringId before, StringId before_that, StringId further = {}) {
    const uint32_t mix = kind * 0x9E3779B1u ^ Mix(before, 0x85EBCA77u) ^
                         Mix(before_that, 0xC2B2AE3Du) ^ Mix(further, 0x27D4EB2Fu);
    return guesses_[mix >> kShift];
  }

 private:
  static uint32_t Mix(StringId text, uint32_t factor) {
    return static_cast<uint32_t>(Index(text)) * factor;
  }

  static constexpr int kBits = 15;  // 128 KiB, beside the tables' own in a core's cache
  static constexpr int kShift = 32 - kBits;
  std::vector<StringId> guesses_ = std::vector<StringId>(size_t{1} << kBits);
};

}  // namespace trainprof
