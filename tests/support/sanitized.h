// What is different where a sanitizer watches.
#pragma once

namespace trainprof::testing {

// It reserves terabytes of addresses, which no limit of memory fits.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

// How often a test on random inputs goes round, or how large an input is that is long for its own
// sake. Under a sanitizer each takes several times as long, and a fourth of them shows as much:
// what it looks for hides in the kinds of input, not in their number. `all` counts in every other
// build.
template <class T>
constexpr T Rounds(T all) {
  return kIsSanitized ? all / 4 : all;
}

}  // namespace trainprof::testing
