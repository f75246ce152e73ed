#include "analysis/saves.h"

#include <algorithm>
#include <map>
#include <utility>

#include "analysis/host/timeline.h"
#include "analysis/rule.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

bool AnyNameSaves(const Trace& trace) {
  for (uint32_t name = 0; name < trace.strings.size(); ++name) {
    CancelPoint(name);
    if (trace.Facts(StringId{name}).is_io != 0) return true;
  }
  return false;
}

// By thread that feeds a device the times in which it saves, in order.
std::map<TrackId, std::vector<Interval>> SavingTimes(const RankModel& model) {
  const RangeTable& ranges = model.trace.ranges;
  std::map<TrackId, std::vector<Interval>> times;
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    CancelPoint(row);
    if (model.trace.Facts(ranges.name[row]).is_io == 0) continue;
    const Interval when = ranges.interval(Row{row});
    const TrackId thread = ranges.track[row];
    if (!model.feeders[Index(thread)] || !model.InWindow(when)) continue;
    std::vector<Interval>& of_thread = times[thread];
    // One within another is part of it.
    if (!of_thread.empty() && when.end <= of_thread.back().end) continue;
    of_thread.push_back(when);
  }
  return times;
}

// The time of these that holds `at`, or nullptr.
const Interval* At(const std::vector<Interval>& times, TraceTime at) {
  const auto behind = std::partition_point(times.begin(), times.end(),
                                           [&](const Interval& time) { return time.begin <= at; });
  if (behind == times.begin() || at >= (behind - 1)->end) return nullptr;
  return &*(behind - 1);
}

bool IsIdleMeanwhile(const RankModel& model, const DeviceAccount& device,
                     const std::map<TrackId, std::vector<Interval>>& times) {
  std::vector<Interval> idle;
  for (const auto& [gap, why] : device.idle) {
    if (why == DeviceClass::kIdleIo) idle.push_back(gap);
  }
  std::vector<Interval> all;
  for (const auto& [thread, of_thread] : times) {
    all.insert(all.end(), of_thread.begin(), of_thread.end());
  }
  const IntervalSet meanwhile = IntervalSet::Union(std::move(idle))
                                    .IntersectWith(IntervalSet::Union(std::move(all)))
                                    .IntersectWith(model.device_steps.device_window);
  return model.ShareOfWindow(meanwhile.Total()) >= kLeastShare;
}

}  // namespace

const DeviceAccount* DeviceOfHostWork(const RankModel& model) {
  return DeviceWithMost(model,
                        {DeviceClass::kIdlePython, DeviceClass::kIdleIo, DeviceClass::kIdleHostWork,
                         DeviceClass::kIdlePreempted, DeviceClass::kIdleUnknown});
}

std::vector<CopyCall> FindSavedCopies(const RankModel& model) {
  const DeviceAccount* const device = DeviceOfHostWork(model);
  if (device == nullptr || model.device_steps.count() == 0 || !AnyNameSaves(model.trace)) return {};
  const std::map<TrackId, std::vector<Interval>> times = SavingTimes(model);
  if (times.empty() || !IsIdleMeanwhile(model, *device, times)) return {};
  const auto around = [&](const CopyCall& copy) -> const Interval* {
    const auto of_thread = times.find(model.trace.api.track[Index(copy.call)]);
    if (of_thread == times.end()) return nullptr;
    return At(of_thread->second, model.trace.api.begin[Index(copy.call)]);
  };
  std::vector<CopyCall> copies = model.copies;
  std::map<const Interval*, int64_t> bytes;
  std::erase_if(copies, [&](const CopyCall& copy) {
    const auto& ops = model.trace.device_ops;
    if (ops.direction[Index(copy.op)] != CopyDirection::kDeviceToHost) return true;
    const Interval* const time = around(copy);
    if (time != nullptr) bytes[time] += ops.bytes[Index(copy.op)];
    return time == nullptr;
  });
  std::erase_if(copies,
                [&](const CopyCall& copy) { return bytes[around(copy)] <= kPageableAsyncBytes; });
  return copies;
}

std::vector<Row> OpsOf(const std::vector<CopyCall>& copies) {
  std::vector<Row> ops;
  for (const CopyCall& copy : copies) ops.push_back(copy.op);
  return ops;
}

}  // namespace trainprof
