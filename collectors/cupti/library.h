// Finds and loads the right libcupti: the one that the process uses already, else the one that its
// Python packages bring, else the toolkit's. Each is tried in a process of ours first
// (library_answer.h): nothing is called here in one that has not answered there.
#pragma once

#include "collectors/cupti/api.h"

namespace trainprof::collectors {

// The file that a path leads to.
struct TriedFile {
  uint64_t device;
  uint64_t number;
};
inline constexpr int kMostTriedFiles = 16;

struct CuptiLibrary {
  CuptiApi api;
  char path[1024];
  char injection[1024];  // our own file
  char driver[1024];     // the process's libcuda.so.1
  int64_t search_ends_ns;
  TriedFile tried[kMostTriedFiles];
  int tried_count;
  int64_t answers_ns;  // what asking took, of the set-up
  int cuda_version;    // that it came with: 13000 for 13.0
  int driver_version;  // as cuDriverGetVersion gives it; 0: unknown
  bool found;
  char why_not[1536];  // when not found, in words for the user
};

// A candidate that does not fit is passed over; the first of them is named when no other is there.
void LoadCupti(CuptiLibrary* library);

// Why the driver does not work, into `what`; false when it does. Initialises it in a process of its
// own: takes as long as cuInit takes.
bool DriverTrouble(const CuptiLibrary& library, char* what, size_t size);

// Whether this process has mapped a file whose path holds `part`.
bool IsMapped(const char* part);

}  // namespace trainprof::collectors
