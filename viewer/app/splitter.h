// The bar between two panes, which its user drags.
#pragma once

#include "viewer/theme/theme.h"

namespace trainprof {

enum class Between : uint8_t { kAboveAndBelow, kLeftAndRight };

// How thick it is, in points.
inline constexpr float kSplitterPoints = 5;

// At the cursor, `length` pixels long. Returns by how many points it was dragged in this frame,
// right or down; 0 where not.
float Splitter(const char* id, const Theme& theme, Between between, float length);

}  // namespace trainprof
