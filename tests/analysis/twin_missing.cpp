// See twin_missing.h; each function is the sentence of the law that stands above it.
#include "tests/analysis/twin_missing.h"

#include <algorithm>
#include <utility>

namespace trainprof {
namespace {

bool AnyHasId(const DeviceOpTable& ops, int64_t id) {
  for (size_t op = 0; op < ops.size(); ++op) {
    if (ops.correlation[op] == id) return true;
  }
  return false;
}

// A call that starts work, with an id that no operation has. One that takes less than a microsecond copies nothing.
bool IsMissing(const Trace& trace, size_t call) {
  const ApiKind kind = trace.api.kind[call];
  if (kind != ApiKind::kLaunch && kind != ApiKind::kGraphLaunch && kind != ApiKind::kCopy) {
    return false;
  }
  if (kind == ApiKind::kCopy && trace.api.end(call).ns - trace.api.begin[call].ns < 1000) {
    return false;
  }
  const int64_t id = trace.api.correlation[call];
  return id != kNoCorrelation && !AnyHasId(trace.device_ops, id);
}

// When it is sure that the device has done what a call asked for: its thread waited for the whole
// device, or on each stream that it uses there something began that it launched later.
int64_t DoneBy(const Trace& trace, size_t call, DeviceId device) {
  const ApiTable& api = trace.api;
  const DeviceOpTable& ops = trace.device_ops;
  const TrackId thread = api.track[call];
  std::vector<DeviceId> devices;
  std::vector<TrackId> streams;
  size_t shown = 0;
  size_t missing = 0;
  for (size_t other = 0; other < api.size(); ++other) {
    if (api.track[other] != thread) continue;
    missing += IsMissing(trace, other) ? 1 : 0;
    bool has_row = false;
    for (size_t op = 0; op < ops.size(); ++op) {
      if (Index(ops.launch[op]) != other) continue;
      has_row = true;
      devices.push_back(trace.tracks[Index(ops.track[op])].device);
      if (devices.back() == device) streams.push_back(ops.track[op]);
    }
    shown += has_row ? 1 : 0;
  }
  int64_t done = INT64_MAX;
  std::sort(devices.begin(), devices.end());
  if (devices.empty() || devices.front() == devices.back()) {
    for (size_t other = 0; other < api.size(); ++other) {
      if (api.track[other] == thread && api.begin[other] >= api.begin[call] &&
          trace.Text(api.name[other]) == "cudaDeviceSynchronize") {
        done = std::min(done, api.end(other).ns);
        break;
      }
    }
  }
  if (streams.empty() || 4 * missing > shown + missing) return done;
  int64_t last = INT64_MIN;
  for (const TrackId stream : streams) {
    std::pair<int64_t, int64_t> next{INT64_MAX, INT64_MAX};  // launched, began
    for (size_t op = 0; op < ops.size(); ++op) {
      if (ops.track[op] != stream || ops.launch[op] == kNoRow) continue;
      const size_t launch = Index(ops.launch[op]);
      if (api.track[launch] != thread || api.begin[launch] <= api.begin[call]) continue;
      next = std::min(next, {api.begin[launch].ns, ops.begin[op].ns});
    }
    last = std::max(last, next.second);
  }
  return std::min(done, last);
}

}  // namespace

std::vector<Unseen> UnseenOn(const Trace& trace, DeviceId device) {
  const ApiTable& api = trace.api;
  const DeviceOpTable& ops = trace.device_ops;
  std::vector<size_t> missing;
  for (size_t call = 0; call < api.size(); ++call) {
    if (IsMissing(trace, call)) missing.push_back(call);
  }
  const bool any_joined = std::any_of(ops.launch.begin(), ops.launch.end(),
                                      [](Row launch) { return launch != kNoRow; });
  const bool any_without_id = AnyHasId(ops, kNoCorrelation);
  if (missing.empty() || (any_without_id && !any_joined)) return {};
  size_t known = 0;
  for (size_t call = 0; call < api.size(); ++call) {
    const bool has_row = std::find(ops.launch.begin(), ops.launch.end(),
                                   Row{static_cast<uint32_t>(call)}) != ops.launch.end();
    known += has_row ? 1 : 0;
  }
  if (4 * missing.size() > missing.size() + known) return {{INT64_MIN, INT64_MAX, kNoTrack}};
  std::vector<Unseen> unseen;
  for (const size_t call : missing) {
    bool here = false;
    bool elsewhere = false;
    for (size_t op = 0; op < ops.size(); ++op) {
      if (ops.launch[op] == kNoRow || api.track[Index(ops.launch[op])] != api.track[call]) continue;
      (trace.tracks[Index(ops.track[op])].device == device ? here : elsewhere) = true;
    }
    if (!here && elsewhere) continue;
    const int64_t end = DoneBy(trace, call, device);
    if (api.begin[call].ns < end) unseen.push_back({api.begin[call].ns, end, api.track[call]});
  }
  std::sort(unseen.begin(), unseen.end(), [](const Unseen& a, const Unseen& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (size_t i = 0; i + 1 < unseen.size();) {
    if (unseen[i + 1].begin > unseen[i].end) {
      ++i;
      continue;
    }
    unseen[i].end = std::max(unseen[i].end, unseen[i + 1].end);
    if (unseen[i].thread != unseen[i + 1].thread) unseen[i].thread = kNoTrack;
    unseen.erase(unseen.begin() + static_cast<ptrdiff_t>(i) + 1);
  }
  return unseen;
}

}  // namespace trainprof
