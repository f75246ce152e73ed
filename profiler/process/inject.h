// How the collector gets into the profiled processes: by environment variables alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trace/base/result.h"

namespace trainprof {

inline constexpr char kNvtxInjectionVariable[] = "NVTX_INJECTION64_PATH";
inline constexpr char kCudaInjectionVariable[] = "CUDA_INJECTION64_PATH";
inline constexpr char kIttVariable[] = "INTEL_LIBITTNOTIFY64";
inline constexpr char kCollectorLibrary[] = "libtrainprof_injection.so";
inline constexpr char kPythonPathVariable[] = "PYTHONPATH";
inline constexpr char kPythonFolder[] = "trainprof-python";
// Names that folder for a Python that has trainprof installed and does not read PYTHONPATH
// (packaging/trainprof.pth).
inline constexpr char kPythonFolderVariable[] = "TRAINPROF_PYTHON";
inline constexpr char kPreloadVariable[] = "LD_PRELOAD";
// Overrides the folder in which the collector's library is looked for.
inline constexpr char kLibraryFolderVariable[] = "TRAINPROF_LIB_DIR";

// libtrainprof_injection.so in $TRAINPROF_LIB_DIR, else in ../lib of the trainprof program (build
// and install tree alike). The error names the places.
Result<std::filesystem::path> FindCollector();

// The folder beside the collector's library that Python is to look into first (PYTHONPATH), so that
// it starts our hooks; empty where it is not installed.
std::filesystem::path PythonFolderOf(const std::filesystem::path& collector);

// Who holds the one injection slot of NVTX, or of the CUDA driver, in words for the user; nothing
// when it is free or ours.
std::optional<std::string> InjectionHolder(const char* variable = kNvtxInjectionVariable);

// True within a program that another `trainprof run` is recording: it records this one too.
bool InsideAnotherRun();

// Our own environment as "NAME=value", in its order, with these variables replaced or appended.
std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace trainprof
