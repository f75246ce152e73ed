#include "analysis/account/replicas.h"

#include <algorithm>
#include <map>

#include "trace/base/cancel.h"
#include "trace/base/kernel_names.h"
#include "trace/tables/communication.h"

namespace trainprof {
namespace {

// Of a device's kernels, so many are the root's, too, and as often: the last part of a batch may be smaller,
// and picks other kernels.
constexpr double kSameKernels = 0.8;
// Of a device's work, so much is done while the root works: threads that share Python's GIL launch for one
// device after the other, so that it is not all of it. Stages of a pipeline without micro-batches: none.
constexpr double kBeside = 0.25;
// Of what is sent, so little is sent between a device's first and last kernel of a step. Of a pipeline with
// micro-batches that is most.
constexpr double kWithin = 0.1;
// As many bytes come back as gradients as go out as weights, but for the batch and its outputs.
constexpr double kAsMany = 2;

// A kernel that sends one device's data to all, or adds up all devices' on one.
bool IsNamed(const Trace& trace, Row op, std::string_view collective) {
  if (!Communicates(trace, op)) return false;
  const std::string_view name = FunctionOf(trace.Text(trace.device_ops.name[Index(op)]));
  const size_t at = name.find(collective);
  if (at == name.npos) return false;
  // Not AllReduce, not ReduceScatter.
  return !name.substr(at + collective.size()).starts_with("Scatter") &&
         !name.substr(0, at).ends_with("All");
}

struct Device {
  DeviceId id = kNoDevice;
  std::vector<Row> computes;  // kernels within the steps, by stream and begin
  std::vector<Row> sent;      // copies from this device
  std::map<StringId, int64_t> kernels;
  int64_t launches = 0;
  int64_t bytes = 0;
  IntervalSet busy;
};

class Search {
 public:
  Search(const Trace& trace, const Steps& steps)
      : trace_(trace), ops_(trace.device_ops), steps_(steps) {
    std::map<DeviceId, Device> by_id;
    for (uint32_t row = 0; row < ops_.size(); ++row) {
      CancelPoint(row);
      if (steps.OnDeviceAt(ops_.begin[row]) == nullptr) continue;
      const DeviceId id = trace.tracks[Index(ops_.track[row])].device;
      if (id != kNoDevice) Add(Row{row}, by_id[id]);
    }
    for (auto& [id, device] : by_id) {
      if (device.computes.empty()) continue;
      device.id = id;
      device.busy = TimesOf(device.computes);
      devices_.push_back(std::move(device));
    }
  }

  std::optional<Replicas> Find() {
    if (devices_.size() < 2) return std::nullopt;
    // It does all that the others do, and what is done once: the loss, the optimizer.
    const auto root =
        std::max_element(devices_.begin(), devices_.end(),
                         [](const Device& a, const Device& b) { return a.launches < b.launches; });
    std::swap(devices_.front(), *root);
    Replicas found{devices_.front().id, std::move(broadcasts_), std::move(reductions_)};
    if (found.out.empty()) {
      found.out = devices_.front().sent;
      for (size_t i = 1; i < devices_.size(); ++i) {
        found.back.insert(found.back.end(), devices_[i].sent.begin(), devices_[i].sent.end());
      }
      if (!SendAsMuch()) return std::nullopt;
    }
    if (!IsInHalf(found.out) || !IsInHalf(found.back)) return std::nullopt;
    std::vector<Row> all = found.out;
    all.insert(all.end(), found.back.begin(), found.back.end());
    const IntervalSet sending = TimesOf(all);
    for (size_t i = 1; i < devices_.size(); ++i) {
      if (!IsReplica(devices_[i], sending)) return std::nullopt;
    }
    return found;
  }

 private:
  void Add(Row op, Device& device) {
    if (ops_.kind[Index(op)] == DeviceOpKind::kCopy) {
      if (ops_.direction[Index(op)] != CopyDirection::kPeer) return;
      device.sent.push_back(op);
      device.bytes += ops_.bytes[Index(op)];
      return;
    }
    if (ops_.kind[Index(op)] != DeviceOpKind::kKernel) return;
    if (IsNamed(trace_, op, "Broadcast")) return broadcasts_.push_back(op);
    if (IsNamed(trace_, op, "Reduce")) return reductions_.push_back(op);
    if (Communicates(trace_, op)) return;
    device.computes.push_back(op);
    ++device.kernels[ops_.name[Index(op)]];
    ++device.launches;
  }

  IntervalSet TimesOf(const std::vector<Row>& rows) const {
    std::vector<Interval> times;
    times.reserve(rows.size());
    for (const Row row : rows) times.push_back(ops_.interval(row));
    return IntervalSet::Union(std::move(times));
  }

  bool SendAsMuch() const {
    const auto out = static_cast<double>(devices_.front().bytes);
    double back = 0;
    for (size_t i = 1; i < devices_.size(); ++i) back += static_cast<double>(devices_[i].bytes);
    return out > 0 && back > 0 && out <= kAsMany * back && back <= kAsMany * out;
  }

  bool IsInHalf(const std::vector<Row>& rows) const {
    std::vector<const Step*> in;
    for (const Row row : rows) in.push_back(steps_.OnDeviceAt(ops_.begin[Index(row)]));
    std::sort(in.begin(), in.end());
    in.erase(std::unique(in.begin(), in.end()), in.end());
    return 2 * in.size() >= steps_.count();
  }

  bool IsReplica(const Device& device, const IntervalSet& sending) const {
    const Device& root = devices_.front();
    int64_t same = 0;
    for (const auto& [name, count] : device.kernels) {
      const auto there = root.kernels.find(name);
      if (there != root.kernels.end()) same += std::min(count, there->second);
    }
    if (static_cast<double>(same) < kSameKernels * static_cast<double>(device.launches))
      return false;
    const Duration beside = device.busy.TotalWithin(root.busy);
    if (static_cast<double>(beside.ns) < kBeside * static_cast<double>(device.busy.Total().ns)) {
      return false;
    }
    const Duration within = sending.TotalWithin(SpansOf(device));
    return static_cast<double>(within.ns) <= kWithin * static_cast<double>(sending.Total().ns);
  }

  // Of each step, from the first kernel to the end of the last one.
  IntervalSet SpansOf(const Device& device) const {
    std::map<const Step*, Interval> spans;
    for (const Row row : device.computes) {
      const Interval time = ops_.interval(row);
      const auto [span, is_new] = spans.try_emplace(steps_.OnDeviceAt(time.begin), time);
      if (is_new) continue;
      span->second.begin = std::min(span->second.begin, time.begin);
      span->second.end = std::max(span->second.end, time.end);
    }
    std::vector<Interval> times;
    for (const auto& [step, span] : spans) times.push_back(span);
    return IntervalSet::Union(std::move(times));
  }

  const Trace& trace_;
  const DeviceOpTable& ops_;
  const Steps& steps_;
  std::vector<Device> devices_;  // the root first
  std::vector<Row> broadcasts_;
  std::vector<Row> reductions_;
};

}  // namespace

std::optional<Replicas> FindReplicas(const Trace& trace, const Steps& steps) {
  if (steps.count() == 0) return std::nullopt;
  return Search(trace, steps).Find();
}

}  // namespace trainprof
