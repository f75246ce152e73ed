// What a libcupti does when it is asked, found out in a process of ours before the profiled program
// loads it: NVIDIA's 13.2.86 ends the process that asks it for its version where the driver cannot
// be initialised, and 13.3 to 13.5 give an error to every question there. Each process asks for
// itself, since its environment (CUDA_VISIBLE_DEVICES, limits, the container) decides. Used by the
// collector and by `trainprof doctor`, so that both say the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trainprof::collectors {

enum class LibraryVerdict : uint32_t {
  kNone,        // it ended while it was asked, or was not asked
  kUsable,      // it may be loaded
  kNotLoaded,   // dlopen failed
  kTooNew,      // for the driver, by its SONAME: nothing was called in it
  kIncomplete,  // a function is missing
  kRefuses,     // gives an error when asked for its version
  kNoSizes,     // does not tell how large its records are
};

inline constexpr size_t kMostLibraryPath = 1024;

// Told by the process that asks, anew before each question.
struct LibraryReport {
  LibraryVerdict verdict;
  char asking[64];  // the function that is being called; "": none
  char path[kMostLibraryPath];
  char detail[512];        // what dlopen says, or the function that is missing
  int32_t driver_version;  // 13000 for 13.0; 0: unknown
  int32_t cupti_version;   // the same; only thousands where it was not asked
  int32_t error;           // CUptiResult or CUresult of the last question, 0 when that went well
};

struct LibraryAnswer {
  LibraryReport report;
  int32_t start_error;  // negative errno when no process could be started
  int32_t signal;       // that ended it
  bool timed_out;
};

// `injection`: this library's own file, which is also the program that asks. `driver`: the
// libcuda.so.1 of the process. `library`: a path, or a name for the loader.
LibraryAnswer AskLibrary(const char* injection, const char* driver, const char* library,
                         int64_t limit_ns);
// Initialises the driver in such a process. True when that works; else *what says why not.
bool AskDriverToStart(const char* injection, const char* driver, int64_t limit_ns, char* what,
                      size_t size);

// Where a libcupti may be: its names, the folders in Python's site-packages, the toolkits and the
// folders in them.
inline constexpr const char* kCuptiNames[] = {"libcupti.so.13", "libcupti.so.12",
                                              "libcupti.so.11.8", "libcupti.so"};
inline constexpr const char* kCuptiPackageFolders[] = {"nvidia/cuda_cupti/lib", "nvidia/cu13/lib",
                                                       "torch/lib"};
inline constexpr const char* kCuptiToolkitFolders[] = {"extras/CUPTI/lib64", "lib64", "lib"};
inline constexpr const char* kCudaHomeVariables[] = {"CUDA_HOME", "CUDA_PATH"};
inline constexpr const char* kCudaToolkits[] = {"/usr/local/cuda", "/usr/local/cuda-13",
                                                "/usr/local/cuda-12", "/opt/cuda"};

// One may take this long to answer, and the search for one that does may.
inline constexpr int64_t kAnswerLimitNs = 5'000'000'000;
inline constexpr int64_t kSearchLimitNs = 10'000'000'000;

// Why `library` is not used, in words for the user.
void DescribeAnswer(const char* library, const LibraryAnswer& answer, const char* driver_trouble,
                    char* out, size_t size);
// After which of the answers it is worth asking the driver.
bool DriverMayBeTheCause(const LibraryAnswer& answer);

}  // namespace trainprof::collectors
