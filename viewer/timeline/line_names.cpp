// What the lines are called.
#include <fmt/format.h>

#include <filesystem>

#include "viewer/timeline/lines.h"

namespace trainprof {
namespace {

std::string RankName(const Trace& trace) {
  if (trace.rank_known) return fmt::format("rank {}", trace.rank);
  const std::string file = std::filesystem::path(trace.path).filename().string();
  return file.empty() ? "process" : file;
}

// The source's own name; some end with a blank.
std::string_view OwnName(const Trace& trace, StringId id) {
  std::string_view name = trace.Text(id);
  while (name.ends_with(' ')) name.remove_suffix(1);
  return name;
}

std::string ThreadName(const Trace& trace, TrackId id, bool several_processes) {
  const Track& track = trace.tracks[Index(id)];
  const Process& process = trace.processes[Index(track.process)];
  std::string name(OwnName(trace, track.name));
  if (track.kind == TrackKind::kOther) {  // the profiler's own rows
    if (name.empty()) name = OwnName(trace, process.name);
    return name.empty() ? "other events" : name;
  }
  if (name.empty()) {
    name = track.tid == process.pid ? "main thread" : fmt::format("thread {}", track.tid);
  }
  return several_processes ? fmt::format("{}, pid {}", name, process.pid) : name;
}

std::string GpuName(const Trace& trace, DeviceId id) {
  if (id == kNoDevice) return "unknown GPU";
  const Device& device = trace.devices[Index(id)];
  if (device.name == kEmptyString) return fmt::format("GPU {}", device.id);
  return fmt::format("GPU {} {}", device.id, trace.Text(device.name));
}

std::string StreamName(const Trace& trace, TrackId id) {
  const Track& track = trace.tracks[Index(id)];
  if (track.tid < 0) return "all streams";  // kineto's -1: of a device or a context
  const std::string number = fmt::format("stream {}", track.tid);
  const std::string_view name = OwnName(trace, track.name);
  if (name.starts_with(number)) return std::string(name);
  return name.empty() ? number : fmt::format("{} {}", number, name);
}

std::string SeriesName(const Trace& trace, const SeriesId& id) {
  if (id.track == kNoTrack) {
    if (id.total == MemoryTotal::kHost) return "host memory";
    return fmt::format("{}memory {}", id.device_id < 0 ? "host " : "",
                       id.total == MemoryTotal::kAllocated ? "allocated" : "reserved");
  }
  const std::string_view key = trace.Text(id.key);
  const std::string_view name = trace.Text(id.name);
  return name == key ? std::string(name) : fmt::format("{}: {}", name, key);
}

}  // namespace

std::string Lines::NameOf(uint32_t index) const {
  const Line& line = lines_[index];
  const Trace& trace = TraceOf(index);
  switch (line.kind) {
    case LineKind::kRank:
      return RankName(trace);
    case LineKind::kThread:
      return ThreadName(trace, line.track, several_processes_[line.rank]);
    case LineKind::kGpu:
      return GpuName(trace, line.device);
    case LineKind::kStream:
      return StreamName(trace, line.track);
    case LineKind::kStreamRanges:
      return StreamName(trace, line.track) + " annotations";
    case LineKind::kStreamSyncs:
      return StreamName(trace, line.track) + " synchronisation";
    case LineKind::kCopies:
      return "copies";
    case LineKind::kIdle:
      return "idle by cause";
    case LineKind::kMemory:
    case LineKind::kCounter:
      return SeriesName(trace, series_[line.rank][line.series]);
  }
  return {};
}

}  // namespace trainprof
