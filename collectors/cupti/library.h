// Finds and loads the right libcupti: the one that the process uses already, else the one that its
// Python packages bring, else the toolkit's.
#pragma once

#include "collectors/cupti/api.h"

namespace trainprof::collectors {

struct CuptiLibrary {
  CuptiApi api;
  char path[1024];
  int driver_version;  // as cuDriverGetVersion gives it; 0: unknown
  bool found;
  char why_not[512];  // when not found, in words for the user
};

// A candidate that is newer than the driver is passed over, and named when no other is there.
void LoadCupti(CuptiLibrary* library);

}  // namespace trainprof::collectors
