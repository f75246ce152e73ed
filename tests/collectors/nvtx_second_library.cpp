// A library of the profiled program that embeds NVTX for itself, as NCCL and cuDNN do: its copy of
// NVTX initialises apart from the program's.
#include <nvtx3/nvToolsExt.h>

extern "C" void RangeOfSecondLibrary() {
  nvtxRangePushA("second library");
  nvtxRangePop();
}
