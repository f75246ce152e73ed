#include "collectors/cupti/messages.h"

#include <stdio.h>

#include "collectors/cupti/result_names.h"

namespace trainprof::collectors {
namespace {

// CUptiResult, by number: headers of older versions lack the newer ones.
constexpr int kNotInitialized = 15;
constexpr int kInsufficientPrivileges = 35;
constexpr int kMultipleSubscribers = 39;
constexpr int kVirtualizedPrivileges = 40;
constexpr int kConfidentialComputing = 41;

void DescribeUnknown(const CuptiLibrary& library, CUptiResult result, const char* call, char* out,
                     size_t size) {
  const int version = library.cuda_version;
  const int driver = library.driver_version;
  char trouble[256];
  if (driver != 0 && DriverTrouble(library, trouble, sizeof trouble)) {
    snprintf(out, size, "the driver cannot be used: %s. libcupti %d.%d at %s: %s gives %s", trouble,
             version / 1000, version % 1000 / 10, library.path, call,
             ResultName(library.api, result));
  } else if (driver == 0) {
    snprintf(out, size, "no NVIDIA driver: %s gives %s", call, ResultName(library.api, result));
  } else if (version / 10 != driver / 10) {
    snprintf(out, size,
             "libcupti %d.%d at %s, driver %d.%d: %s gives %s. Name the path of another one "
             "in TRAINPROF_CUPTI",
             version / 1000, version % 1000 / 10, library.path, driver / 1000, driver % 1000 / 10,
             call, ResultName(library.api, result));
  } else {
    snprintf(out, size, "%s gives %s", call, ResultName(library.api, result));
  }
}

}  // namespace

void DescribeFailure(const CuptiLibrary& library, CUptiResult result, const char* call,
                     const char* holder, char* out, size_t size) {
  switch (static_cast<int>(result)) {
    case kMultipleSubscribers:
      snprintf(out, size, "CUPTI is held by '%s'. Recording host, NVTX and Python only.",
               holder[0] == 0 ? "another tool" : holder);
      break;
    case kInsufficientPrivileges:
    case kVirtualizedPrivileges:
      snprintf(
          out, size,
          "CUPTI needs admin here: see RmProfilingAdminOnly in /proc/driver/nvidia/params; run "
          "with --cap-add=SYS_ADMIN or set NVreg_RestrictProfilingToAdminUsers=0.");
      break;
    case kConfidentialComputing:
      snprintf(out, size, "CUPTI is not supported on a GPU in confidential-computing mode.");
      break;
    case kNotInitialized:
    case kUnknownResult:
      DescribeUnknown(library, result, call, out, size);
      break;
    default:
      snprintf(out, size, "%s gives %s", call, ResultName(library.api, result));
  }
}

}  // namespace trainprof::collectors
