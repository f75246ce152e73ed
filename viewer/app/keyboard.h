// Obeys the keyboard as viewer/state/shortcuts.h says.
#pragma once

#include "viewer/state/state.h"

namespace trainprof {

// Once a frame. While a text is written only those count that write nothing. True when a key is
// held that acts in each frame, so that the next one is needed at once.
bool HandleKeys(State& state);

}  // namespace trainprof
