// Names of CUPTI's results that need no CUPTI: where the library cannot start it names none.
#pragma once

namespace trainprof::collectors {

inline constexpr int kUnknownResult = 999;  // CUPTI_ERROR_UNKNOWN

// "CUPTI_ERROR_UNKNOWN" of kUnknownResult; "an unknown error" where no version has such a number.
const char* KnownResultName(int result);

}  // namespace trainprof::collectors
