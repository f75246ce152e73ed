// The part of the run that is to be recorded: steps, delay, duration, capture (layout.h). Closed
// stretches are written as gaps, so that the reader does not take them for idleness.
#pragma once

#include "collectors/core/string_cache.h"

namespace trainprof::collectors {

// From the options; writes nothing. With the first event of the process.
void StartWindow();

// The writer that notices a change of the window writes the gap's end or begin.
enum class WindowChange { kNone, kOpened, kClosed };

struct WindowVerdict {
  bool open;  // record this event
  WindowChange change;
};

// At each event; reads the clock while a delay or a duration runs.
WindowVerdict CheckTime();
// Where a step's range begins. The window opens with step A and closes before step B.
WindowVerdict OnStep();
// Where a range named as capture=NAME begins and has ended.
WindowVerdict OnCaptureBegin();
WindowChange OnCaptureEnd();

bool WindowIsOpen();

}  // namespace trainprof::collectors
