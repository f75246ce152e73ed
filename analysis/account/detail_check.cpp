#include "analysis/account/detail_check.h"

#include <algorithm>
#include <cmath>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

struct Mean {
  double ns = 0;
  double error = 0;  // standard error
};

Mean MeanStep(const Steps& steps) {
  const auto count = static_cast<double>(steps.count());
  Mean mean{static_cast<double>(steps.device_window.Total().ns) / count, 0};
  double squares = 0;
  for (const Step& step : steps.steps) {
    squares += std::pow(static_cast<double>(step.device.Length().ns) - mean.ns, 2);
  }
  if (count > 1) mean.error = std::sqrt(squares / (count - 1) / count);
  return mean;
}

// The mean of steps with detail without what recording takes of them, as far as that explains the difference: where the
// device decides how long they take, it does not.
double Explained(double detail_ns, double other_ns, Duration recording) {
  return std::clamp(other_ns, detail_ns - static_cast<double>(recording.ns), detail_ns);
}

bool Differ(const Mean& a, const Mean& b) {
  constexpr double kErrors = 2;  // about 95 % of what chance alone gives
  const double difference = std::abs(a.ns - b.ns);
  return difference > DetailCheck::kSteps * std::min(a.ns, b.ns) &&
         difference > kErrors * std::hypot(a.error, b.error);
}

// Operations count for the step that launched them, whenever they ran: a host that runs ahead is
// elsewhere by then.
Duration DeviceWork(const Trace& trace, const Steps& detail, DeviceId device) {
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<Interval> work;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    CancelPoint(i);
    if (trace.tracks[Index(ops.track[i])].device != device) continue;
    const Interval issued =
        ops.launch[i] == kNoRow ? ops.interval(Row{i}) : trace.api.interval(ops.launch[i]);
    if (detail.window.TotalWithin(issued).ns > 0) work.push_back(ops.interval(Row{i}));
  }
  return IntervalSet::Union(std::move(work)).Total();
}

}  // namespace

DetailCheck CheckDetail(const Trace& trace, const Steps& detail, const Steps& others,
                        const HostAccount& host, std::span<const DeviceAccount> devices,
                        Duration recording) {
  DetailCheck check;
  const auto count = static_cast<int64_t>(others.count());
  if (count < DetailCheck::kFewest || detail.count() == 0 || devices.empty()) return check;
  check.others = count;
  const auto mean = [](Duration total, const Steps& steps) {
    return Duration{total.ns / steps.divisor()};
  };
  const IntervalSet wait = host.InputWait();
  check.step = mean(detail.device_window.Total(), detail);
  check.other_step = mean(others.device_window.Total(), others);
  check.wait = mean(wait.TotalWithin(detail.window), detail);
  check.other_wait = mean(wait.TotalWithin(others.window), others);
  for (const DeviceAccount& device : devices) {
    check.device_work =
        std::max(check.device_work, mean(DeviceWork(trace, detail, device.device), detail));
  }
  check.recording = recording;
  Mean with = MeanStep(detail);
  const Mean without = MeanStep(others);
  with.ns = Explained(with.ns, without.ns, recording);
  check.is_unlike = Differ(with, without);
  return check;
}

double DetailCheck::ShareApart() const {
  const auto others_ns = static_cast<double>(other_step.ns);
  const double detail_ns = Explained(static_cast<double>(step.ns), others_ns, recording);
  const auto [less, more] = std::minmax(others_ns, detail_ns);
  return more <= 0 ? 0 : 1 - less / more;
}

}  // namespace trainprof
