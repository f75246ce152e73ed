// What stands before the events: top-level members, names of processes and threads.
#include <fmt/format.h>

#include <algorithm>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/chrome_writer.h"

namespace trainprof {

void ChromeWriter::WriteMember(std::string_view key, std::string_view raw) {
  w_.Quoted(key);
  w_.Raw(": ");
  w_.Raw(raw);
  w_.Raw(",\n");
}

std::string ChromeWriter::Members() {
  w_.Clear();
  WriteMembers();
  std::string text(w_.text());
  w_.Clear();
  return text;
}

std::string ChromeWriter::Metadata() {
  w_.Clear();
  WriteMetadata();
  std::string text(w_.text());
  w_.Clear();
  return text;
}

void ChromeWriter::WriteMembers() {
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
  WriteMember("baseTimeNanoseconds", std::to_string(WholeMicroseconds(trace_.base_ns)));
}

void ChromeWriter::WriteDevices() {
  w_.Raw("\"deviceProperties\": [");
  for (size_t i = 0; i < trace_.devices.size(); ++i) {
    w_.Raw(i == 0 ? "" : ",\n");
    WriteDevice(w_, trace_.devices[i], trace_.Text(trace_.devices[i].name));
  }
  w_.Raw("],\n");
}

void ChromeWriter::WriteDevice(JsonWriter& w, const Device& device, std::string_view name) {
  w.Raw("{\"id\": ");
  w.Integer(device.id);
  w.Raw(", \"name\": ");
  w.Quoted(name);
  w.Raw(fmt::format(
      ", \"totalGlobalMem\": {}, \"computeMajor\": {}, \"computeMinor\": {}, \"numSms\": {}}}",
      device.total_memory_bytes, device.compute_major, device.compute_minor, device.num_sms));
}

void ChromeWriter::WriteMetadata() {
  for (const Process& process : trace_.processes) {
    std::string name(trace_.Text(process.name));
    if (is_recording_ && name.empty()) name = fmt::format("process {}", process.pid);
    WriteProcess(process.pid,
                 {std::move(name), std::string(trace_.Text(process.labels)), process.sort_index});
  }
  for (uint32_t i = 0; i < trace_.tracks.size(); ++i) {
    const Track& track = trace_.tracks[i];
    const ChromeLanes::Place place = layout_.PlaceOf(TrackId{i});
    std::string name(trace_.Text(track.name));
    if (is_recording_ && name.empty()) {
      name =
          fmt::format("{} {}", track.kind == TrackKind::kStream ? "stream" : "thread", track.tid);
    }
    WriteThread(place, name, track.sort_index);
    if (track.kind == TrackKind::kStream) WriteStream(place, track);
  }
  for (const ChromeLanes::Lane& lane : layout_.lanes().lanes()) {
    const Track& track = trace_.tracks[Index(lane.track)];
    const std::string_view base = trace_.Text(track.name);
    const std::string name =
        base.empty()
            ? fmt::format("{} {} (lane {})", track.kind == TrackKind::kStream ? "stream" : "thread",
                          track.tid, lane.number + 1)
            : fmt::format("{} (lane {})", base, lane.number + 1);
    WriteThread({layout_.PlaceOf(lane.track).pid, lane.tid}, name, track.sort_index);
  }
  if (!is_recording_) return;
  constexpr int64_t kDevicesBelow =
      5'000'000;  // kineto's sort index of devices: under all processes
  for (const Device& device : trace_.devices) {
    const std::string_view name = trace_.Text(device.name);
    WriteProcess(device.id, {std::string(name.empty() ? "GPU" : name),
                             fmt::format("GPU {}", device.id), kDevicesBelow + device.id});
  }
}

// Where several ranks share the file, the rank stands before the name and the labels, and the
// processes of a rank stand together.
void ChromeWriter::WriteProcess(int64_t pid, ProcessNames names) {
  if (rank_ != nullptr) {
    constexpr int64_t kSortStride = 1'000'000'000;
    const int64_t rank = std::clamp(rank_->rank(), int64_t{0}, kSortStride);
    const std::string word = fmt::format("rank {}", rank_->rank());
    processes_[pid] = names;
    // Kineto's own rows are known by these names.
    const bool is_known = names.name == "Spans" || names.name == "Traces";
    if (!is_known) names.name = word + (names.name.empty() ? "" : ": ") + names.name;
    names.labels = word + (names.labels.empty() ? "" : ", ") + names.labels;
    names.sort_index =
        rank * kSortStride + std::clamp(names.sort_index, int64_t{0}, kSortStride - 1);
    rank_->FindPid(pid, pid);
  }
  if (!names.name.empty()) {
    WriteMetadataEvent({pid, 0}, "process_name", "name", [&] { w_.Quoted(names.name); });
  }
  if (!names.labels.empty()) {
    WriteMetadataEvent({pid, 0}, "process_labels", "labels", [&] { w_.Quoted(names.labels); });
  }
  WriteMetadataEvent({pid, 0}, "process_sort_index", "sort_index",
                     [&] { w_.Integer(names.sort_index); });
}

void ChromeWriter::WriteThread(ChromeLanes::Place place, std::string_view name,
                               int64_t sort_index) {
  if (!name.empty()) WriteMetadataEvent(place, "thread_name", "name", [&] { w_.Quoted(name); });
  WriteMetadataEvent(place, "thread_sort_index", "sort_index", [&] { w_.Integer(sort_index); });
}

// What is known of a stream and has no place in Chrome's format.
void ChromeWriter::WriteStream(ChromeLanes::Place place, const Track& track) {
  if (track.order != StreamOrder::kUnknown) {
    WriteMetadataEvent(place, kStreamOrderEvent, "order", [&] { w_.Quoted(Name(track.order)); });
  }
  if (track.priority != 0) {
    WriteMetadataEvent(place, kStreamPriorityEvent, "priority",
                       [&] { w_.Integer(track.priority); });
  }
}

template <class WriteValue>
void ChromeWriter::WriteMetadataEvent(ChromeLanes::Place place, std::string_view what,
                                      std::string_view key, WriteValue write_value) {
  if (w_.size() != 0) w_.Raw(",\n");
  w_.Raw("{\"ph\":\"M\",\"name\":");
  w_.Quoted(what);
  w_.Raw(",\"pid\":");
  w_.Integer(place.pid);
  w_.Raw(",\"tid\":");
  w_.Integer(place.tid);
  w_.Raw(",\"args\":{");
  w_.Quoted(key);
  w_.Raw(":");
  write_value();
  w_.Raw("}}");
}

}  // namespace trainprof
