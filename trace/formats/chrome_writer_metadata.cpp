// What stands before the events: top-level members, names of processes and threads.
#include <fmt/format.h>

#include "trace/formats/chrome_writer.h"

namespace trainprof {

void ChromeWriter::WriteMember(std::string_view key, std::string_view raw) {
  w_.Quoted(key);
  w_.Raw(": ");
  w_.Raw(raw);
  w_.Raw(",\n");
}

void ChromeWriter::WriteHeader() {
  w_.Raw("{\n");
  for (const auto& [key, raw] : trace_.source_members) {
    if (key == "baseTimeNanoseconds" || key == "traceEvents") continue;
    std::string spaced = raw;
    // HTA finds the rank by the text `"rank": 3`, with the space.
    constexpr std::string_view kTight = "\"rank\":";
    const size_t at = spaced.find(kTight);
    if (key == "distributedInfo" && at != std::string::npos && spaced[at + kTight.size()] != ' ') {
      spaced.insert(at + kTight.size(), " ");
    }
    WriteMember(key, spaced);
  }
  if (is_recording_) {
    WriteMember("schemaVersion", "1");
    WriteMember("displayTimeUnit", "\"ms\"");
    WriteMember("distributedInfo", fmt::format("{{\"rank\": {}, \"world_size\": {}}}", trace_.rank,
                                               trace_.world_size));
    WriteDevices();
  }
  WriteMember("baseTimeNanoseconds", std::to_string(trace_.base_ns));
  w_.Raw("\"traceEvents\": [\n");
}

void ChromeWriter::WriteDevices() {
  w_.Raw("\"deviceProperties\": [");
  for (size_t i = 0; i < trace_.devices.size(); ++i) {
    const Device& device = trace_.devices[i];
    w_.Raw(i == 0 ? "{\"id\": " : ",\n{\"id\": ");
    w_.Integer(device.id);
    w_.Raw(", \"name\": ");
    w_.Quoted(trace_.Text(device.name));
    w_.Raw(fmt::format(
        ", \"totalGlobalMem\": {}, \"computeMajor\": {}, \"computeMinor\": {}, \"numSms\": {}}}",
        device.total_memory_bytes, device.compute_major, device.compute_minor, device.num_sms));
  }
  w_.Raw("],\n");
}

void ChromeWriter::WriteMetadata() {
  for (const Process& process : trace_.processes) {
    std::string name(trace_.Text(process.name));
    if (is_recording_ && name.empty()) name = fmt::format("process {}", process.pid);
    WriteProcess(process.pid, name, process);
  }
  for (uint32_t i = 0; i < trace_.tracks.size(); ++i) {
    const Track& track = trace_.tracks[i];
    const ChromeLanes::Place place = lanes_.PlaceOf(TrackId{i});
    std::string name(trace_.Text(track.name));
    if (is_recording_ && name.empty()) {
      name =
          fmt::format("{} {}", track.kind == TrackKind::kStream ? "stream" : "thread", track.tid);
    }
    WriteThread(place.pid, place.tid, name, track.sort_index);
  }
  for (const ChromeLanes::Lane& lane : lanes_.lanes()) {
    const Track& track = trace_.tracks[Index(lane.track)];
    const std::string_view base = trace_.Text(track.name);
    const std::string name =
        base.empty()
            ? fmt::format("{} {} (lane {})", track.kind == TrackKind::kStream ? "stream" : "thread",
                          track.tid, lane.number + 1)
            : fmt::format("{} (lane {})", base, lane.number + 1);
    WriteThread(lanes_.PlaceOf(lane.track).pid, lane.tid, name, track.sort_index);
  }
  if (!is_recording_) return;
  constexpr int64_t kDevicesBelow =
      5'000'000;  // kineto's sort index of devices: under all processes
  for (const Device& device : trace_.devices) {
    Process process{.pid = device.id, .sort_index = kDevicesBelow + device.id};
    const std::string_view name = trace_.Text(device.name);
    WriteProcess(device.id, name.empty() ? "GPU" : name, process);
    BeginEvent();
    w_.Raw(
        fmt::format("{{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":{},\"tid\":0,"
                    "\"args\":{{\"labels\":\"GPU {}\"}}}}",
                    device.id, device.id));
    EndEvent();
  }
}

void ChromeWriter::WriteProcess(int64_t pid, std::string_view name, const Process& process) {
  const auto write = [&](std::string_view what, std::string_view key, auto value) {
    BeginEvent();
    w_.Raw("{\"ph\":\"M\",\"name\":\"");
    w_.Raw(what);
    w_.Raw("\",\"pid\":");
    w_.Integer(pid);
    w_.Raw(",\"tid\":0,\"args\":{\"");
    w_.Raw(key);
    w_.Raw("\":");
    value();
    w_.Raw("}}");
    EndEvent();
  };
  if (!name.empty()) write("process_name", "name", [&] { w_.Quoted(name); });
  if (process.labels != kEmptyString) {
    write("process_labels", "labels", [&] { w_.Quoted(trace_.Text(process.labels)); });
  }
  write("process_sort_index", "sort_index", [&] { w_.Integer(process.sort_index); });
}

void ChromeWriter::WriteThread(int64_t pid, int64_t tid, std::string_view name,
                               int64_t sort_index) {
  const auto begin = [&](std::string_view head) {
    BeginEvent();
    w_.Raw(head);
    w_.Integer(pid);
    w_.Raw(",\"tid\":");
    w_.Integer(tid);
  };
  if (!name.empty()) {
    begin("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":");
    w_.Raw(",\"args\":{\"name\":");
    w_.Quoted(name);
    w_.Raw("}}");
    EndEvent();
  }
  begin("{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":");
  w_.Raw(",\"args\":{\"sort_index\":");
  w_.Integer(sort_index);
  w_.Raw("}}");
  EndEvent();
}

}  // namespace trainprof
