// CUPTI_ENABLE_HW_TRACE in the environment: CUPTI then takes kernels' times from the hardware's own trace,
// for trainprof as for any other profiler.
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cstdint>

#include "collectors/cupti/versions.h"

namespace trainprof::collectors {

// What is to be said of it with that CUPTI, in `text`. False: it is not set.
inline bool DescribeHwTrace(uint32_t cupti_version, char* text, size_t bytes) {
  const char* value = secure_getenv("CUPTI_ENABLE_HW_TRACE");
  if (value == nullptr || *value == 0 || strcmp(value, "0") == 0) return false;
  snprintf(
      text, bytes, "CUPTI_ENABLE_HW_TRACE=%.16s is set%s", value,
      HasSafeHwTrace(cupti_version)
          ? ""
          : ": before 13.4 Update 1, CUPTI then leaks memory with each record and may crash where a CUDA "
            "graph is made; unset it");
  return true;
}

}  // namespace trainprof::collectors
