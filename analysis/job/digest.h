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
#include "analysis/job/collectives.h"
#include "trace/base/result.h"

namespace trainprof {

using DeviceSplit = std::array<Duration, kDeviceClasses>;
using HostSplit = std::array<Duration, kHostClasses>;

// A model of layers that repeat has some dozen different kernels.
inline constexpr size_t kMostOperations = 64;

// What the operations of one name (kernels, copies, memsets) took of a device in each step.
struct OperationSteps {
  std::string name;             // whole, as the trace has it
  int64_t names = 1;            // more than 1: of others together, which have no name
  int64_t count = 0;            // that begin within the steps' time on the device
  std::vector<Duration> steps;  // as DeviceSteps::steps; those that overlap count each

  bool operator==(const OperationSteps&) const = default;
};

// Where the time of a device went in each step.
struct DeviceSteps {
  int64_t device = 0;  // DeviceReport::id
  std::vector<DeviceSplit>
      steps;  // as analysis.device_steps; each sums to the step's time on the device
  // The names that took most, most first, at most kMostOperations; and what all others took.
  // Together they are all that the device did; less the time that it did several at once, busy.
  std::vector<OperationSteps> operations;
  OperationSteps others;

  bool operator==(const DeviceSteps&) const = default;
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
