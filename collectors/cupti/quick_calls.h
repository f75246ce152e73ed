// Which of the calls that return at once are worth a look at where they come from: a walk up to the site costs some
// microseconds, and a copy's call takes as many.
#pragma once

#include <cstdint>

namespace trainprof::collectors {

// Zeros look at the next one. One thread uses it.
struct QuickCalls {
  // Where all sites have had their stacks, up to so many are passed over between two looks.
  static constexpr uint32_t kMostPassed = 31;

  uint32_t to_pass;
  uint32_t in_vain;  // looks in a row at a site that had its stacks
  uint32_t random;   // so that a loop of as many calls does not show the same one each time

  // Whether the next call is passed over.
  bool Pass() {
    if (to_pass == 0) return false;
    --to_pass;
    return true;
  }
  void NoteLook(bool was_in_vain) {
    in_vain = was_in_vain ? in_vain + 1 : 0;
    random = random * 1664525 + 1013904223;  // of Numerical Recipes
    const uint32_t most = in_vain < kMostPassed ? in_vain : kMostPassed;
    to_pass = (random >> 16) % (most + 1);
  }
};

}  // namespace trainprof::collectors
