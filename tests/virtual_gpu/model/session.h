// The process as a user of CUDA: whether the driver works, the injected library, each thread's
// current context, and what a stream handle stands for.
#pragma once

#include <cuda.h>

#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

// What cuInit does: once, finds the devices and loads CUDA_INJECTION64_PATH. Later calls return the
// same result. Faults and a fork since then are answered as the driver does.
CUresult Initialize();
// While another thread is in it, behind the injected library, where the driver holds its locks.
void WaitForInitialization();
// Whether Initialize() was called, and what calls get where it was not or where the driver does not
// work.
CUresult Readiness();

// Null when the thread has none.
Context* CurrentContext();
void SetCurrentContext(Context* context);
// Of the current context; without one, device 0.
int CurrentDevice();

// The device's primary context, made on first use (which the tool learns). The device must exist.
Context& UsePrimaryContext(int ordinal);
// A context of its own, owned by the caller until DestroyContext.
Context* CreateContext(int ordinal);
void DestroyContext(Context* context);
// The contexts of the process by their number; null when there is none with it.
Context* FindContext(uint32_t uid);

// handle: CUstream or cudaStream_t; null and 1 are the legacy default stream of the context, 2 the
// thread's own default stream.
Stream& StreamOf(Context& context, const void* handle);
Stream* CreateStream(Context& context, bool blocking, int priority);
void DestroyStream(Stream* stream);

}  // namespace vgpu
