// Which calls of the CUDA runtime and driver are recorded, and whose stacks are taken: numbers of
// CUPTI's tables (cbids), which keep their meaning from version to version.
#pragma once

#include <cstdint>

#include "trace/recording/wire/rows.h"

namespace trainprof::collectors {

enum class CallUse : uint8_t {
  kQuick,   // returns at once, as a rule
  kWaits,   // its stack is taken when it takes long
  kCopies,  // the same, and of quick ones that of the first of each site
  kOrders,  // makes a stream wait, for an event or for a function: as copies
  kLaunch,  // of kernels: a record of the device answers it; its stack where it takes very long, at first
  kHostLaunch,  // of a function of the host, which a record answers from CUPTI 13.1 on: as copies
};

struct Call {
  recording::CallDomain domain;
  uint16_t cbid;
  CallUse use;
  const char* name;
};

// Launches, copies, memsets, synchronizations, allocations, event records and waits, and what loads modules or makes
// graphs. `*count` of them. A version that does not know a number refuses it, which is harmless.
const Call* RecordedCalls(uint32_t* count);

// nullptr: it is none of them.
const char* NameOfRecorded(recording::CallDomain domain, uint32_t cbid);

inline constexpr uint32_t kMostCbids = 1024;

// A set of calls, made of zeros.
struct CallSet {
  uint64_t bits[2][kMostCbids / 64];

  void Add(recording::CallDomain domain, uint32_t cbid) {
    Word(domain, cbid) |= uint64_t{1} << (cbid % 64);
  }
  bool Has(recording::CallDomain domain, uint32_t cbid) const {
    return cbid < kMostCbids &&
           (const_cast<CallSet*>(this)->Word(domain, cbid) >> (cbid % 64) & 1) != 0;
  }

 private:
  uint64_t& Word(recording::CallDomain domain, uint32_t cbid) {
    return bits[domain == recording::CallDomain::kDriver ? 0 : 1][cbid / 64];
  }
};

}  // namespace trainprof::collectors
