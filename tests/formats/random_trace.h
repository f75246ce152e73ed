// Random traces, as JSON.
#pragma once

#include <cstdint>
#include <string>

namespace trainprof {

// Up to 60 events of every kind, with the awkward values that real files hold. The same seed gives
// the same text.
std::string RandomTraceJson(uint32_t seed);

}  // namespace trainprof
