// Whether a sanitizer watches: it reserves terabytes of addresses, which no limit of memory fits.
#pragma once

namespace trainprof::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

}  // namespace trainprof::testing
