// What the collector writes as the fact "cupti.state" where no GPU work is missing that the user
// wanted. Whatever else it writes there is why GPU work was not recorded.
#pragma once

namespace trainprof::recording {

inline constexpr char kGpuRecording[] = "recording";
// Begins it; the option that the user gave follows.
inline constexpr char kGpuOff[] = "off: ";
// Is in it. Such a child cannot use the GPU.
inline constexpr char kGpuForked[] = "forked after CUDA init";

}  // namespace trainprof::recording
