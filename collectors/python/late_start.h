// Python's hooks in a process whose interpreter was kept from them: by -I, -S or -E, by another sitecustomize, by an
// environment that its own launcher changed.
#pragma once

namespace trainprof::collectors {

// The interpreter of this process, if it has one, is asked to load the hooks as soon as it comes to it, where it has not
// done so itself. For who loads the library without Python's doing; on any thread, without the GIL, as often as one likes.
// False where there is no interpreter that could be asked, or not yet.
bool StartHooksLate();

}  // namespace trainprof::collectors
