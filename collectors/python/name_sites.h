// Where ranges are opened: of each name that a thread uses for the first time, the stack.
#pragma once

namespace trainprof::collectors {

// From here on. May be called again, by any thread. A walk costs some 10 us; walks stay within a thousandth
// of the thread's time, so that a program whose names are all different pays no more.
void WatchNames();

}  // namespace trainprof::collectors
