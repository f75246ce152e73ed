// The CUDA injection: the driver loads this library in cuInit when CUDA_INJECTION64_PATH names it,
// and calls InitializeInjection. Processes that use no CUDA pay nothing.
#include "collectors/cupti/session.h"
#include "collectors/python/late_start.h"

// 1 whatever happens: the program goes on, recorded or not.
extern "C" [[gnu::visibility("default")]] int InitializeInjection() {
  trainprof::collectors::StartSession();
  trainprof::collectors::StartHooksLate();
  return 1;
}
