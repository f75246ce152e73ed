// Copies and memsets: which engine by what the addresses are, and which of them block the host, as
// the "API synchronization behavior" chapter of the CUDA runtime's manual says.
#pragma once

#include <cuda.h>

#include "tests/virtual_gpu/model/machine.h"

namespace vgpu {

enum class Waiting { kCallWaits, kAsynchronous };

// Memory of the host or of the device, as the addresses say.
CUresult Copy(Stream& stream, uint64_t target, uint64_t source, uint64_t bytes, Waiting waiting);
// Between two contexts' devices; the stream is of either.
CUresult CopyBetween(Stream& stream, Context& target_context, Context& source_context,
                     uint64_t bytes, Waiting waiting);
CUresult Fill(Stream& stream, uint64_t target, uint32_t value, uint64_t bytes, Waiting waiting);

}  // namespace vgpu
