// Python's hooks in a process whose interpreter was kept from them: by -I, -S or -E, by another sitecustomize, by an
// environment that its own launcher changed.
#pragma once

namespace trainprof::collectors {

// The interpreter of this process, if it has one, is asked to load the hooks as soon as it comes to it, where it has not
// done so itself. For who loads the library without Python's doing; on any thread, without the GIL, as often as one likes.
// Where the library lies in the process from its beginning (LD_PRELOAD), it needs no call: the hooks come before the program.
void StartHooksLate();

}  // namespace trainprof::collectors
