// Metadata: what ChromeTables keeps of it, and what it does once all events are in: names, devices,
// the top-level members.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "trace/formats/chrome/chrome_tables.h"
#include "trace/formats/io/json_text.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxParsedMember = 1 << 20;

// kineto's own rows about the recording ("PyTorch Profiler (0)", "Record Window End") carry these
// texts as pid; they are no activity.
bool IsSpanProcess(std::string_view name) { return name == "Spans" || name == "Traces"; }

// Metadata events that say something of a process or a track, by their one argument.
struct KnownMetadata {
  std::string_view what;
  std::string_view key;
  ArgValue::Type type;
};
constexpr KnownMetadata kMetadata[] = {
    {"process_name", "name", ArgValue::Type::kString},
    {"process_labels", "labels", ArgValue::Type::kString},
    {"process_sort_index", "sort_index", ArgValue::Type::kInt},
    {"thread_name", "name", ArgValue::Type::kString},
    {"thread_sort_index", "sort_index", ArgValue::Type::kInt},
    {kStreamOrderEvent, "order", ArgValue::Type::kString},
    {kStreamPriorityEvent, "priority", ArgValue::Type::kInt},
};

StreamOrder OrderIn(std::string_view text) {
  const auto* const name =
      std::find(std::begin(kStreamOrderNames), std::end(kStreamOrderNames), text);
  return name == std::end(kStreamOrderNames)
             ? StreamOrder::kUnknown
             : static_cast<StreamOrder>(name - std::begin(kStreamOrderNames));
}

int64_t IntegerAt(const Json& object, const char* key, int64_t otherwise) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : otherwise;
}

}  // namespace

bool ChromeTables::AddMetadata(const ChromeEvent& event) {
  const std::string_view what = builder_.trace().Text(event.name);
  const auto* const known = std::find_if(std::begin(kMetadata), std::end(kMetadata),
                                         [&](const auto& kind) { return kind.what == what; });
  if (known == std::end(kMetadata) || event.args.size() != 1) return false;
  const Arg& arg = event.args[0];
  if (builder_.trace().Text(arg.key) != known->key || arg.value.type != known->type) {
    notes_.Add(Note::kWrongType);
    return false;
  }
  metadata_.push_back({.what = event.name,
                       .pid = NumberOf(event.pid),
                       .tid = NumberOf(event.tid),
                       .text = arg.value.text,
                       .number = arg.value.integer});
  return true;
}

bool ChromeTables::AddMember(std::string_view key, std::string raw) {
  const size_t bytes = key.size() + raw.size() + sizeof(members_[0]);
  if (member_bytes_ + bytes > kMaxMemberBytes) return false;
  member_bytes_ += bytes;
  members_.emplace_back(key, std::move(raw));
  return true;
}

void ChromeTables::Finish() {
  CloseOpenEvents();
  ApplyMetadata();
  NameAfterTexts();
  FindDeviceTracks();
  PlacePoints();
  NameAfterTexts();  // of tracks that hold points alone
  SetDevices();
  SetOutliersAside();
  ApplyMembers();
  MarkSpanTracks();
  builder_.trace().source = is_kineto_ ? SourceKind::kKineto : SourceKind::kChrome;
}

void ChromeTables::ApplyMetadata() {
  for (const Metadata& metadata : metadata_) {
    const std::string_view what = builder_.trace().Text(metadata.what);
    if (!what.starts_with("process_")) {
      ApplyThreadMetadata(metadata);
      continue;
    }
    if (!MayAdd(metadata.pid, true)) continue;
    Process& process = builder_.process(builder_.FindOrAddProcess(metadata.pid));
    if (what == "process_name") process.name = metadata.text;
    if (what == "process_labels") process.labels = metadata.text;
    if (what == "process_sort_index") process.sort_index = metadata.number;
  }
}

// Whether there is room for metadata of a process, and for a track of it unless that exists.
bool ChromeTables::MayAdd(int64_t pid, bool exists) {
  const Trace& trace = builder_.trace();
  const bool may_add_process = trace.processes.size() < kMaxTracks;
  const bool may_add_track = trace.tracks.size() < kMaxTracks;
  const bool known = builder_.FindProcess(pid) != kNoProcess;
  if ((known || may_add_process) && (exists || may_add_track)) return true;
  notes_.Add(Note::kTooManyTracks);
  return false;
}

// A pid or tid that is a text names what no metadata event named.
void ChromeTables::NameAfterTexts() {
  if (text_of_number_.empty()) return;
  Trace& trace = builder_.trace();
  const auto name_after = [&](StringId& name, int64_t number) {
    const auto text = text_of_number_.find(number);
    if (name == kEmptyString && text != text_of_number_.end()) name = text->second;
  };
  for (Process& process : trace.processes) name_after(process.name, process.pid);
  for (Track& track : trace.tracks) name_after(track.name, track.tid);
}

void ChromeTables::ApplyThreadMetadata(const Metadata& metadata) {
  if (!MayAdd(metadata.pid, true)) return;
  const ProcessId process = builder_.FindOrAddProcess(metadata.pid);
  const std::string_view what = builder_.trace().Text(metadata.what);
  const bool is_name = what == "thread_name";
  const auto apply = [&](TrackId id) {
    Track& track = builder_.track(id);
    if (is_name) track.name = metadata.text;
    if (what == "thread_sort_index") track.sort_index = metadata.number;
    if (what == kStreamOrderEvent) track.order = OrderIn(builder_.trace().Text(metadata.text));
    if (what == kStreamPriorityEvent) {
      track.priority =
          static_cast<int32_t>(std::clamp<int64_t>(metadata.number, INT32_MIN, INT32_MAX));
    }
  };
  const TrackId thread = builder_.FindThread(process, metadata.tid);
  const TrackId stream = builder_.FindStream(process, metadata.tid);
  if (thread != kNoTrack) apply(thread);
  if (stream != kNoTrack) apply(stream);
  if (thread != kNoTrack || stream != kNoTrack) return;
  if (lanes_.contains(Place{metadata.pid, metadata.tid}))
    return;  // its events are on the true stream
  if (what.starts_with("stream_") || !MayAdd(metadata.pid, false)) return;
  const bool is_stream = is_name && builder_.trace().Text(metadata.text).starts_with("stream ");
  apply(is_stream ? builder_.FindOrAddStream(process, metadata.tid)
                  : builder_.FindOrAddThread(process, metadata.tid));
}

TrackId ChromeTables::TrackOfPoints(const PointTrack& points) {
  const ProcessId process = builder_.FindOrAddProcess(points.place.first);
  int64_t number = points.place.second;
  const bool exists = builder_.FindStream(process, number) != kNoTrack ||
                      builder_.FindThread(process, number) != kNoTrack;
  if (const auto lane = lanes_.find(points.place); lane != lanes_.end() && !exists) {
    number = lane->second;
  }
  TrackId track = builder_.FindStream(process, number);
  if (track == kNoTrack) track = builder_.FindThread(process, number);
  if (track == kNoTrack) {
    track = points.is_stream ? builder_.FindOrAddStream(process, number)
                             : builder_.FindOrAddThread(process, number);
    // The text that says so, which an export keeps as the track's name.
    if (points.is_stream)
      builder_.track(track).name = builder_.Intern(fmt::format("stream {}", number));
  }
  return track;
}

// A stream belongs to the device that its events name, else to the one whose id is the pid.
void ChromeTables::SetDevices() {
  std::vector<Track>& tracks = builder_.trace().tracks;
  device_of_track_.resize(tracks.size(), INT64_MAX);
  for (size_t i = 0; i < tracks.size(); ++i) {
    if (tracks[i].kind != TrackKind::kStream) continue;
    const int64_t named = device_of_track_[i];
    const int64_t pid = builder_.process(tracks[i].process).pid;
    tracks[i].device = builder_.FindOrAddDevice(named != INT64_MAX ? named : pid);
  }
}

// Arrows, instants and counters go to the stream of their pid and tid, else to the thread.
void ChromeTables::PlacePoints() {
  std::vector<TrackId> track_of;
  track_of.reserve(point_tracks_.size());
  for (const PointTrack& points : point_tracks_) track_of.push_back(TrackOfPoints(points));
  Trace& trace = builder_.trace();
  const auto place = [&](EventColumns& table) {
    for (TrackId& track : table.track) track = track_of[Index(track) & ~kPointTrack];
  };
  place(trace.instants);
  place(trace.counters);
  place(trace.flows);
}

void ChromeTables::MarkSpanTracks() {
  const int64_t empty_pid = NumberForText("");
  Trace& trace = builder_.trace();
  for (Track& track : trace.tracks) {
    const Process& process = trace.processes[Index(track.process)];
    if (track.kind == TrackKind::kThread &&
        (IsSpanProcess(trace.Text(process.name)) || process.pid == empty_pid)) {
      track.kind = TrackKind::kOther;
    }
  }
}

void ChromeTables::FillCopySizes(Trace& built) const {
  if (api_bytes_of_.empty()) return;
  DeviceOpTable& ops = built.device_ops;
  for (size_t row = 0; row < ops.size(); ++row) {
    if (ops.kind[row] == DeviceOpKind::kKernel || ops.bytes[row] != 0) continue;
    if (ops.launch[row] == kNoRow) continue;
    const TrackId thread = built.api.track[Index(ops.launch[row])];
    const Process& process = built.processes[Index(built.ProcessOf(thread))];
    const auto it = api_bytes_of_.find({process.pid, ops.correlation[row]});
    if (it != api_bytes_of_.end()) ops.bytes.Set(row, it->second);
  }
}

void ChromeTables::ApplyMembers() {
  Trace& trace = builder_.trace();
  for (auto& [key, raw] : members_) {
    // As a tree, JSON takes ten times its text; real ones are some kilobytes.
    const bool small = raw.size() <= kMaxParsedMember;
    if (key == "deviceProperties" && small) ApplyDevices(raw);
    if (key == "distributedInfo" && small) ApplyDistributed(raw);
    if ((key == "deviceProperties" || key == "distributedInfo") && !small) {
      notes_.AddWithDetail(Note::kOversizedMember, key + " is larger than 1 MiB; not read");
    }
    if (key == "schemaVersion" || key == "deviceProperties" || key == "distributedInfo") {
      is_kineto_ = true;
    }
    const char first = raw.empty() ? ' ' : raw[0];
    if (first == '"') {
      const Json value = Json::parse(raw, nullptr, false);
      if (value.is_string()) trace.environment.emplace_back(key, value.get<std::string>());
    } else if (first != '{' && first != '[') {
      trace.environment.emplace_back(key, raw);
    }
    if (key == "baseTimeNanoseconds") {
      const std::optional<json::Scaled> base = json::ScaledDecimal(raw, 0);
      if (base) {
        trace.base_ns = base->value;
      } else {
        notes_.AddWithDetail(Note::kBadTime, "baseTimeNanoseconds is not a number of nanoseconds");
      }
    }
  }
  trace.source_members = std::move(members_);
}

void ChromeTables::ApplyDevices(const std::string& raw) {
  const Json list = Json::parse(raw, nullptr, false);
  if (!list.is_array()) {
    notes_.AddWithDetail(Note::kWrongType, "deviceProperties is not a list");
    return;
  }
  for (const Json& item : list) {
    if (!item.is_object() || !item.contains("id") || !item["id"].is_number_integer()) {
      notes_.AddWithDetail(Note::kDeviceWithoutId, "a record of deviceProperties without an id");
      continue;
    }
    Device& device = builder_.device(builder_.FindOrAddDevice(item["id"].get<int64_t>()));
    const auto name = item.find("name");
    if (name != item.end() && name->is_string()) {
      device.name = builder_.Intern(name->get_ref<const std::string&>());
    }
    device.total_memory_bytes = IntegerAt(item, "totalGlobalMem", 0);
    device.compute_major = static_cast<int32_t>(IntegerAt(item, "computeMajor", 0));
    device.compute_minor = static_cast<int32_t>(IntegerAt(item, "computeMinor", 0));
    device.num_sms = static_cast<int32_t>(IntegerAt(item, "numSms", 0));
  }
}

void ChromeTables::ApplyDistributed(const std::string& raw) {
  const Json info = Json::parse(raw, nullptr, false);
  if (!info.is_object()) {
    notes_.AddWithDetail(Note::kWrongType, "distributedInfo is not an object");
    return;
  }
  Trace& trace = builder_.trace();
  const int64_t rank = IntegerAt(info, "rank", -1);
  if (rank >= 0) {
    trace.rank = rank;
    trace.rank_known = true;
  }
  trace.world_size = std::max<int64_t>(IntegerAt(info, "world_size", 1), 1);
}

}  // namespace trainprof
