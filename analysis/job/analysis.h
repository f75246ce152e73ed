// The engine: one rank's trace in, its verdict out.
#pragma once

#include <array>
#include <string>
#include <type_traits>
#include <vector>

#include "analysis/account/host_other.h"
#include "analysis/account/memory_growth.h"
#include "analysis/account/operators.h"
#include "analysis/account/phase_lines.h"
#include "analysis/finding.h"
#include "analysis/host/host_facts.h"
#include "analysis/model.h"
#include "analysis/residual_site.h"
#include "analysis/steps/workload.h"

namespace trainprof {

struct AccountLine {
  std::string_view name;   // "idle_input_wait"
  std::string_view title;  // "input wait"
  Duration total;          // over the window
  std::string_view meaning{};

  bool operator==(const AccountLine&) const = default;
};

// One line a class, in their order. `Class`: DeviceClass or HostClass.
template <class Class, size_t N>
std::vector<AccountLine> LinesOf(const std::array<Duration, N>& totals) {
  std::vector<AccountLine> lines;
  for (size_t i = 0; i < N; ++i) {
    const Class c = static_cast<Class>(i);
    lines.push_back({Name(c), Title(c), totals[i]});
    if constexpr (std::is_same_v<Class, DeviceClass>) lines.back().meaning = Meaning(c);
  }
  return lines;
}

struct DeviceReport {
  int64_t id = 0;
  std::string name;
  // Facts of the device; 0 or "" where the trace does not tell.
  std::string compute_capability{};  // "8.0"
  int64_t multiprocessors = 0;
  int64_t memory_bytes = 0;
  bool is_mig_slice = false;
  // Of the kernels in the window, weighted by their time: theoretical, 0..1; < 0: not recorded.
  double occupancy = -1;
  bool stray = false;                // see kStrayShare: reported, but no rule looks at it
  Duration busy;                     // union of operations within the window
  Duration busy_high;                // busy plus what may have been busy without a record
  std::vector<AccountLine> account;  // all classes, in their order; sums to the window

  bool operator==(const DeviceReport&) const = default;
};

// The stepping thread's wait for its loader, within the window. The account charges the device's
// idle time to it only where nothing was queued; `during_idle` is the plain overlap of the two.
struct LoaderWait {
  Duration total;
  Duration during_idle;  // on the device where that is most; `total` without devices

  bool operator==(const LoaderWait&) const = default;
};

struct SkippedRule {
  std::string rule;
  std::string reason;

  bool operator==(const SkippedRule&) const = default;
};

// Everything a report says about one rank; owns its texts and outlives the trace.
struct RankAnalysis {
  int64_t place = 0;  // among the job's traces, in the order in which they are read
  std::string path;
  SourceKind source = SourceKind::kKineto;
  std::string kind;  // KindName of its trace
  int64_t rank = 0;
  bool rank_known = false;
  int64_t world_size = 1;
  int64_t base_ns = 0;

  Steps steps;
  Duration window;
  // What devices' accounts, the loader's wait and findings are over: `steps` without those during
  // which devices were not recorded. The same as `steps` without devices, or without such gaps.
  Steps device_steps;
  Duration device_window;
  Workload workload = Workload::kUnknown;
  double identity_error = 0;  // StepReplay::identity_error(): how far gains can be trusted
  ResidualSite residual;      // where most of it is
  DetailCheck detail_check;   // the counted steps without GPU detail, beside device_steps
  std::vector<DeviceReport> devices;
  // Why devices' figures are ranges, or there are none although the trace shows that devices
  // worked: rows are missing, or of kinds that nobody here knows. Empty where nothing is missing.
  std::string device_doubt;
  std::string launch_doubt;
  std::vector<AccountLine> host_account;
  OtherTime host_other;                // what "other" of that account holds
  std::vector<PhaseLines> host_lines;  // what its phases hold, by source line (OpenByLine)
  Operators operators;
  StepMemory memory;
  LoaderWait loader_wait;
  bool has_host_phases = false;     // false: nothing named a phase, the account is all "other"
  bool phases_are_sampled = false;  // the host's account is by samples of stacks (sampled_phases.h)
  std::vector<Finding> findings;    // largest gain first
  std::vector<Weakness> weaknesses;  // of its devices (DeviceWeaknesses)
  std::vector<SkippedRule> skipped;
  std::vector<std::string> passed;  // rules that were checked and found nothing
  std::vector<QualityItem> quality;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<HostFact> host_facts;

  size_t kernels = 0;
  size_t copies = 0;
  size_t api_calls = 0;
  size_t ranges = 0;
  size_t device_waits =
      0;  // calls within the window in which a thread of the host waited for a device

  double PerStepMs(Duration total) const {
    return total.ToMilliseconds() / static_cast<double>(steps.divisor());
  }
  double Share(Duration part) const { return Part(part, window); }
  // What the account says of that class; 0 where it does not.
  Duration HostTime(HostClass c) const {
    for (const AccountLine& line : host_account) {
      if (line.name == Name(c)) return line.total;
    }
    return {};
  }
  // A step without waiting for other ranks, which is theirs.
  double OwnStepMs() const { return PerStepMs(window - HostTime(HostClass::kRankWait)); }
  double DevicePerStepMs(Duration total) const {
    return total.ToMilliseconds() / static_cast<double>(device_steps.divisor());
  }
  // In which it begins; nullptr: in none.
  const Step* StepOf(const Evidence& evidence) const {
    const bool is_devices = evidence.table == Table::kDeviceOps || evidence.table == Table::kIdle ||
                            evidence.table == Table::kBusy;
    return is_devices ? steps.OnDeviceAt(evidence.when.begin) : steps.At(evidence.when.begin);
  }
  double DeviceShare(Duration part) const { return Part(part, device_window); }

  static double Part(Duration part, Duration whole) {
    return whole.ns == 0 ? 0 : static_cast<double>(part.ns) / static_cast<double>(whole.ns);
  }
  bool operator==(const RankAnalysis&) const = default;
};

// "recording", "kineto", "chrome", or the slug of another importer; lives as long as the trace.
std::string_view KindName(const Trace& trace);

// O(n log n) in the trace's events. Can be cancelled (trace/base/cancel.h).
RankAnalysis Analyze(const RankModel& model);  // Examine, then RateConfidence
RankAnalysis Analyze(const Trace& trace);

// All but the last step: findings are as sure as their rules are.
RankAnalysis Examine(const RankModel& model);
// Lowers the confidence of findings for what weakens all of them: inferred steps, few steps, lost
// records, device work that was not recorded. Says why. Once, when the quality is known.
void RateConfidence(RankAnalysis& rank);
// After gains were lowered: findings stand in their order again, and those that hardly gain are notes.
void RateGainsAgain(RankAnalysis& rank);

}  // namespace trainprof
