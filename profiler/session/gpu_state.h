// What processes of a run say about their GPU recording.
#pragma once

#include <filesystem>
#include <string>

namespace trainprof {

// Why GPU work was not recorded, or not to the end, in the words of the first process that says so;
// "" when none does. Reads a few small chunks of each unsealed segment.
std::string GpuTrouble(const std::filesystem::path& run_directory);

}  // namespace trainprof
