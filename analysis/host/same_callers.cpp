#include "analysis/host/same_callers.h"

#include <algorithm>
#include <map>
#include <optional>

#include "analysis/host/call_sites.h"
#include "trace/base/cancel.h"
#include "trace/base/names.h"

namespace trainprof {
namespace {

// Of one stack so many calls are looked at: a loop that reads a value in each turn has millions.
constexpr uint32_t kMostOfStack = 64;

bool MakesAStreamWait(std::string_view call) {
  return call.find("StreamWaitEvent") != call.npos || LaunchesHostFunction(call);
}

}  // namespace

size_t SameCallers::HashOfKind::operator()(const Kind& kind) const {
  constexpr uint64_t kMixer = 0x9E3779B97F4A7C15;
  uint64_t hash = uint64_t{Index(kind.name)} << 32 | Index(kind.range);
  hash = (hash ^ (hash >> 29)) * kMixer + Index(kind.thread);
  hash = (hash ^ (hash >> 29)) * kMixer + static_cast<uint64_t>(kind.bytes);
  hash = (hash ^ (hash >> 29)) * kMixer + Index(kind.stream);
  return (hash ^ (hash >> 29)) * kMixer + static_cast<uint64_t>(kind.direction);
}

SameCallers::SameCallers(const Trace& trace) : trace_(trace) {
  const ApiTable& calls = trace.api;
  std::map<StringId, bool> makes_wait;
  std::vector<Row> told;  // with a stack, of the kinds that are looked at though they are quick
  for (uint32_t row = 0; row < calls.size(); ++row) {
    CancelPoint(row);
    if (calls.stack[row] == kNoStack) continue;
    if (calls.kind[row] != ApiKind::kCopy) {
      const auto [it, is_new] = makes_wait.try_emplace(calls.name[row]);
      if (is_new) it->second = MakesAStreamWait(trace.Text(calls.name[row]));
      if (!it->second) continue;
    }
    told.push_back(Row{row});
  }
  if (told.empty()) return;
  const DeviceOpTable& ops = trace.device_ops;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    CancelPoint(op);
    if (ops.kind[op] != DeviceOpKind::kCopy || ops.launch[op] == kNoRow) continue;
    copies_.emplace_back(ops.launch[op], Row{op});
  }
  std::sort(copies_.begin(), copies_.end());
  struct Seen {
    std::optional<uint32_t> place;
    uint32_t calls = 0;
  };
  std::map<StackId, Seen> stacks;
  std::vector<Site> places;
  for (const Row call : told) {
    const auto [it, is_new] = stacks.try_emplace(calls.stack[Index(call)]);
    Seen& seen = it->second;
    if (is_new) {
      Site site;
      if (SiteInStack(trace, calls.stack[Index(call)], site)) {
        const auto same = std::find_if(places.begin(), places.end(),
                                       [&](const Site& s) { return s.SamePlace(site); });
        seen.place = static_cast<uint32_t>(same - places.begin());
        if (same == places.end()) places.push_back(std::move(site));
      }
    }
    if (!seen.place || ++seen.calls > kMostOfStack) continue;
    const Row copy = CopyOf(call);
    const Kind kind = KindOf(call, copy);
    Learn(kind, call, *seen.place);
    if (copy != kNoRow) Learn(OfSameSize(kind, ops, copy), call, *seen.place);
  }
}

Row SameCallers::CopyOf(Row call) const {
  const auto copy = std::lower_bound(copies_.begin(), copies_.end(), std::pair(call, Row{0}));
  return copy != copies_.end() && copy->first == call ? copy->second : kNoRow;
}

SameCallers::Kind SameCallers::KindOf(Row call, Row copy) const {
  const ApiTable& calls = trace_.api;
  const TrackId thread = calls.track[Index(call)];
  const Row around = InnermostRange(trace_.ranges, thread, calls.begin[Index(call)]);
  StringId range = kEmptyString;
  if (around != kNoRow) {
    const StringId name = trace_.ranges.name[Index(around)];
    const NameFacts facts = trace_.Facts(name);
    if (!facts.is_step && !facts.is_profiler_step) range = name;
  }
  const CopyDirection direction =
      copy == kNoRow ? CopyDirection::kUnknown : trace_.device_ops.direction[Index(copy)];
  return {thread, calls.name[Index(call)], range, direction};
}

SameCallers::Kind SameCallers::OfSameSize(Kind kind, const DeviceOpTable& ops, Row copy) {
  kind.bytes = ops.bytes[Index(copy)];
  kind.stream = ops.track[Index(copy)];
  return kind;
}

void SameCallers::Learn(const Kind& kind, Row call, uint32_t place) {
  const auto [it, is_new] = known_.try_emplace(kind, Known{call, place});
  if (!is_new && it->second.place != place) it->second.call = kNoRow;
}

Row SameCallers::Of(Row call) const {
  if (known_.empty()) return kNoRow;
  const Row copy = CopyOf(call);
  const Kind kind = KindOf(call, copy);
  auto known = known_.find(kind);
  if (known != known_.end() && known->second.call == kNoRow && copy != kNoRow) {
    known = known_.find(OfSameSize(kind, trace_.device_ops, copy));
  }
  return known == known_.end() ? kNoRow : known->second.call;
}

}  // namespace trainprof
