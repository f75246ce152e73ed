// A report's words on a GPU and on how it was recorded.
#pragma once

#include <string>
#include <string_view>

#include "analysis/job/analysis.h"

namespace trainprof {

// " (compute capability 8.0, 108 multiprocessors, 39.6 GiB)", as far as known.
std::string DeviceFactsText(const DeviceReport& device);

// "GPU 0 NVIDIA H100", "GPU 0" where the trace does not name it.
std::string GpuName(const DeviceReport& device);

// Why a recording shows no device, as far as the collector knew; "" where it has nothing to say.
std::string_view GpuRecordingState(const RankAnalysis& rank);

// A line on what CUPTI may take of the memory of the rank's GPUs; "" where it is not known.
std::string CuptiMemoryText(const RankAnalysis& rank);

}  // namespace trainprof
