// GPU detail is recorded in samples of steps, by which findings judge. The host's side is recorded
// throughout: it tells whether the other steps are like those.
#pragma once

#include <span>

#include "analysis/account/account.h"
#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Means per step, by the steps' clock: those without detail end no earlier than the device can have
// done what one with detail has it do (SetUnknownTimes).
struct DetailCheck {
  int64_t others = 0;    // steps without detail; 0: nothing to compare, and all below is 0
  Duration step;         // with detail
  Duration other_step;   // without
  Duration wait;         // for the loader, with detail
  Duration other_wait;   // without
  Duration recording;    // what that takes of the host in a step with detail; 0: not known
  Duration device_work;  // what a step with detail launches keeps its busiest device busy for
  // The steps' means differ by more than chance, kSteps and recording allow.
  bool is_unlike = false;

  bool operator==(const DetailCheck&) const = default;

  // Of the means' difference, before it is told of.
  static constexpr double kSteps = 0.10;
  // A wait that is that many times as long is another loader than the one that was judged.
  static constexpr double kWait = 1.5;
  // Fewer steps without detail are no steady state.
  static constexpr int64_t kFewest = 10;

  bool LoaderIsUnlike() const {
    return static_cast<double>(other_wait.ns) > kWait * static_cast<double>(wait.ns);
  }
  // By what share the means differ, beside what recording explains.
  double ShareApart() const;
};

// `detail` and `others`: steps with GPU detail and without. `recording`: what that takes of a step (slowed_host.h).
// O(operations + steps).
DetailCheck CheckDetail(const Trace& trace, const Steps& detail, const Steps& others,
                        const HostAccount& host, std::span<const DeviceAccount> devices,
                        Duration recording);

}  // namespace trainprof
