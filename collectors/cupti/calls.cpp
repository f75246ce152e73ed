#include "collectors/cupti/calls.h"

namespace trainprof::collectors {

using recording::CallDomain;

namespace {

constexpr CallDomain R = CallDomain::kRuntime;
constexpr CallDomain D = CallDomain::kDriver;

// Pairs are the call and its form for per-thread default streams (_ptds, _ptsz).
constexpr Call kCalls[] = {
    // Launches: cudaLaunchKernel, ...ExC, cooperative, __cudaLaunchKernel, cudaGraphLaunch,
    // cudaLaunchHostFunc; cuLaunchKernel, ...Ex (Triton), cooperative, cuGraphLaunch.
    {R, 211, false},
    {R, 214, false},
    {R, 430, false},
    {R, 431, false},
    {R, 269, false},
    {R, 270, false},
    {R, 272, false},
    {R, 505, false},
    {R, 506, false},
    {R, 311, false},
    {R, 312, false},
    {R, 284, false},
    {R, 285, false},
    {D, 307, false},
    {D, 442, false},
    {D, 652, false},
    {D, 653, false},
    {D, 477, false},
    {D, 478, false},
    {D, 514, false},
    {D, 515, false},
    // Synchronizations: of device, stream, event, (old) thread; of context.
    {R, 165, true},
    {R, 131, true},
    {R, 239, true},
    {R, 137, true},
    {R, 126, true},
    {D, 17, true},
    {D, 800, true},
    {D, 126, true},
    {D, 440, true},
    {D, 121, true},
    // Copies of the runtime: cudaMemcpy, 2D, ToSymbol, FromSymbol, 3D, Peer, and their Async forms.
    {R, 31, true},
    {R, 215, true},
    {R, 41, true},
    {R, 225, true},
    {R, 32, true},
    {R, 216, true},
    {R, 44, true},
    {R, 228, true},
    {R, 39, true},
    {R, 223, true},
    {R, 40, true},
    {R, 224, true},
    {R, 47, true},
    {R, 230, true},
    {R, 48, true},
    {R, 231, true},
    {R, 144, true},
    {R, 245, true},
    {R, 145, true},
    {R, 246, true},
    {R, 160, true},
    {R, 161, true},
    {R, 162, true},
    {R, 163, true},
    {R, 249, true},
    {R, 250, true},
    {R, 482, true},
    {R, 483, true},
    {R, 509, true},
    {R, 510, true},
    // Copies of the driver: HtoD, DtoH, DtoD, cuMemcpy, 2D, 3D, Peer, and their Async forms.
    {D, 276, true},
    {D, 397, true},
    {D, 277, true},
    {D, 421, true},
    {D, 278, true},
    {D, 398, true},
    {D, 279, true},
    {D, 422, true},
    {D, 280, true},
    {D, 399, true},
    {D, 281, true},
    {D, 423, true},
    {D, 305, true},
    {D, 408, true},
    {D, 306, true},
    {D, 418, true},
    {D, 287, true},
    {D, 405, true},
    {D, 289, true},
    {D, 424, true},
    {D, 290, true},
    {D, 407, true},
    {D, 291, true},
    {D, 425, true},
    {D, 318, true},
    {D, 319, true},
    {D, 426, true},
    {D, 776, true},
    {D, 777, true},
    {D, 796, true},
    {D, 797, true},
    // Memsets: cudaMemset, 2D, 3D and Async; cuMemsetD8, D16, D32 and Async.
    {R, 49, false},
    {R, 233, false},
    {R, 51, false},
    {R, 235, false},
    {R, 50, false},
    {R, 234, false},
    {R, 52, false},
    {R, 236, false},
    {R, 142, false},
    {R, 143, false},
    {D, 249, false},
    {D, 250, false},
    {D, 251, false},
    {D, 216, false},
    {D, 218, false},
    {D, 220, false},
    {D, 428, false},
    {D, 429, false},
    {D, 430, false},
    // Memory: cudaMalloc, Managed, Host, HostAlloc, HostRegister, Async; cudaFree, FreeHost, Async;
    // prefetches; cuMemAlloc, Pitch, HostAlloc, HostRegister, Managed, cuMemFree, FreeHost, Create,
    // Map, Unmap, Release, Async.
    {R, 20, true},
    {R, 21, true},
    {R, 206, true},
    {R, 25, true},
    {R, 27, true},
    {R, 152, true},
    {R, 22, true},
    {R, 26, true},
    {R, 373, false},
    {R, 374, false},
    {R, 391, false},
    {R, 392, false},
    {R, 375, false},
    {R, 376, false},
    {R, 252, false},
    {R, 253, false},
    {R, 449, false},
    {R, 450, false},
    {D, 243, true},
    {D, 244, true},
    {D, 271, true},
    {D, 379, true},
    {D, 371, true},
    {D, 245, true},
    {D, 38, true},
    {D, 294, true},
    {D, 549, true},
    {D, 551, true},
    {D, 552, true},
    {D, 550, true},
    {D, 598, false},
    {D, 599, false},
    {D, 600, false},
    {D, 601, false},
    {D, 611, false},
    {D, 612, false},
    // Order between streams: cudaEventRecord, WithFlags, cudaStreamWaitEvent; the driver's.
    {R, 135, false},
    {R, 242, false},
    {R, 370, false},
    {R, 371, false},
    {R, 147, false},
    {R, 247, false},
    {D, 119, false},
    {D, 441, false},
    {D, 587, false},
    {D, 588, false},
    {D, 295, false},
    {D, 436, false},
};

}  // namespace

const Call* RecordedCalls(uint32_t* count) {
  *count = sizeof kCalls / sizeof kCalls[0];
  return kCalls;
}

CopyArguments ArgumentsOf(CallDomain domain, uint32_t cbid) {
  if (domain == R) {
    const bool plain = cbid == 31 || cbid == 215 || cbid == 41 || cbid == 225;
    return plain ? CopyArguments::kRuntime : CopyArguments::kNone;
  }
  const bool to_device = cbid == 276 || cbid == 397 || cbid == 277 || cbid == 421;
  return to_device ? CopyArguments::kDriverToDevice : CopyArguments::kNone;
}

}  // namespace trainprof::collectors
