// CUPTI's version numbers.
#pragma once

#include <cstdint>

namespace trainprof::collectors {

// The CUDA version (13000 is 13.0) that a CUPTI came with, from what cuptiGetVersion says. The
// numbers until 12.9 are listed in cupti_version.h; from 13.0 on they are 130000 and so on. 0:
// before CUDA 11.
constexpr int CudaVersionOf(uint32_t cupti_version) {
  constexpr int kVersions[] = {11000, 11010, 11040, 11050, 11060, 11080, 12000, 12020,
                               12030, 12040, 12050, 12060, 12060, 12080, 12090, 12090};
  constexpr uint32_t kFirst = 13;
  constexpr uint32_t kLast = kFirst + sizeof kVersions / sizeof kVersions[0] - 1;
  constexpr uint32_t kFirstReadable = 100000;
  const uint32_t v = cupti_version;
  if (v >= kFirstReadable) return static_cast<int>(v / 10000 * 1000 + v % 10000 / 100 * 10);
  return v < kFirst ? 0 : kVersions[(v < kLast ? v : kLast) - kFirst];
}

// The same of a library whose SONAME has this major version: CUPTI 12.0 and 12.1 give the number of 11.8.
constexpr int CudaVersionOf(uint32_t cupti_version, int soname_major) {
  const int version = CudaVersionOf(cupti_version);
  return version == 11080 && soname_major == 12 ? 12000 : version;
}

// The major version of CUDA in a library's SONAME: 13 of "libcupti.so.13", 11 of
// "libcupti.so.11.8". 0: none stands there (2025 of "libcupti.so.2025.1.0" is none).
constexpr int MajorOf(const char* soname) {
  constexpr int kMost = 999;
  for (const char* p = soname; *p != 0; ++p) {
    if (p[0] != '.' || p[1] != 's' || p[2] != 'o' || p[3] != '.') continue;
    int major = 0;
    for (p += 4; *p >= '0' && *p <= '9' && major <= kMost; ++p) major = major * 10 + (*p - '0');
    return major <= kMost ? major : 0;
  }
  return 0;
}

// A driver serves the libraries of its own major version, older and newer ones, and those of every
// version before ("CUDA Compatibility", NVIDIA). Versions as 13000 for 13.0; 0: unknown.
constexpr bool FitsDriver(int cupti_major, int driver_version) {
  return cupti_major == 0 || driver_version == 0 || cupti_major <= driver_version / 1000;
}

// 13.0.0 may deadlock where kernels are switched off while others launch them (CUDA 13.0 Update 1, release notes).
constexpr bool MayDisableKernels(uint32_t cupti_version) { return cupti_version != 130000; }

// 13.4 Update 1, by its release notes.
constexpr bool HasSafeHwTrace(uint32_t cupti_version) { return cupti_version >= 130401; }

// Kernels of a module that was loaded again may have a former one's names before (the same notes).
constexpr bool HasTrueNames(uint32_t cupti_version) { return cupti_version >= 130401; }

// From 12.9 on a request for a buffer may be refused (kineto#1534).
constexpr bool MayRefuseBuffers(uint32_t cupti_version) {
  return CudaVersionOf(cupti_version) >= 12090;
}

}  // namespace trainprof::collectors
