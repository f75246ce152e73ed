// What a job knows of one rank: the only thing that crosses from one rank to another. It owns all
// it says, so that a rank's trace need not stay in memory for the sake of another, and it can be
// written as JSON and read back elsewhere without losing a nanosecond.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/analysis.h"
#include "trace/base/result.h"

namespace trainprof {

using DeviceSplit = std::array<Duration, kDeviceClasses>;
using HostSplit = std::array<Duration, kHostClasses>;

// Where the time of a device went in each step.
struct DeviceSteps {
  int64_t device = 0;  // DeviceReport::id
  std::vector<DeviceSplit>
      steps;  // as analysis.device_steps; each sums to the step's time on the device

  bool operator==(const DeviceSteps&) const = default;
};

struct CollectiveCall {
  // Same of all ranks that took part: the trace's own number, else the place among the calls of its
  // Collectives, from 0.
  int64_t sequence = 0;
  Interval when;  // on the device: it arrives at `begin`

  bool operator==(const CollectiveCall&) const = default;
};

// Calls of one operation on one communicator.
struct Collectives {
  std::string communicator;  // "" where the trace does not say
  std::string members;       // the ranks in it, as the trace writes them: "[0, 1]"; may be ""
  std::string operation;     // "allreduce", else the kernel's name
  int64_t device = 0;        // DeviceReport::id
  bool numbered = false;     // the trace numbers all of them
  std::vector<CollectiveCall> calls;  // by begin

  bool operator==(const Collectives&) const = default;
};

struct RankDigest {
  // As the rank's report has it, but that findings have the confidence that their rules gave them:
  // what weakens it further may be known only when the whole job has been read.
  RankAnalysis analysis;
  std::string host;  // that recorded it; "" where the trace does not say
  std::vector<HostSplit>
      host_steps;  // as analysis.steps; each sums to the step's time on the device
  std::vector<DeviceSteps> devices;      // as analysis.devices
  std::vector<Collectives> collectives;  // in the order of their first calls

  bool operator==(const RankDigest&) const = default;
};

// `place`: the number of the trace among those of its job, in the order in which they are read.
// O(n log n) in the trace's events. Can be cancelled (trace/base/cancel.h).
RankDigest DigestOf(const RankModel& model, int64_t place);

// JSON, of a version of its own: a reader of another one refuses it.
std::string DigestToJson(const RankDigest& digest);
// Equal to what was written. `where` is named in the error, which says what is wrong with the text.
Result<RankDigest> DigestFromJson(std::string_view text, std::string_view where);

}  // namespace trainprof
