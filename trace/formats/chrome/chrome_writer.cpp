// The events, table by table in row order.
#include "trace/formats/chrome/chrome_writer.h"

#include <fmt/format.h>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/formats/chrome/stack_text.h"

namespace trainprof {
namespace {

constexpr size_t kFlushBytes = 64 << 10;  // copied while it is in a core's cache

}  // namespace

void ChromeWriter::Write() {
  w_.Raw("{\n");
  WriteMembers();
  w_.Raw("\"traceEvents\": [\n");
  WriteMetadata();
  WriteTables();
  w_.Raw("\n]}\n");
  sink_.Write(w_.text());
}

bool ChromeWriter::WriteEvents(bool is_first, int64_t shift_ns) {
  first_event_ = is_first;
  shift_ns_ += shift_ns;
  WriteTables();
  sink_.Write(w_.text());
  w_.Clear();
  return first_event_;
}

void ChromeWriter::WriteTables() {
  WriteRanges();
  WriteApi();
  WriteDeviceOps();
  ForEachTable(trace_, [&]<class T>(Table which, const T& table) {
    if constexpr (DescribedTable<T>) WriteDescribed(which, table);
  });
  WritePoints();
  WriteFlows();
  if (is_recording_) WriteLaunchArrows();
  WriteOthers();
}

ChromeLanes::Place ChromeWriter::PlaceOf(TrackId track) const {
  ChromeLanes::Place place = lanes_.PlaceOf(track);
  if (rank_ != nullptr) rank_->FindPid(place.pid, place.pid);
  return place;
}

void ChromeWriter::BeginEvent() {
  if (!first_event_) w_.Raw(",\n");
  first_event_ = false;
}

void ChromeWriter::EndEvent() {
  if (keep_buffer_ || w_.size() < kFlushBytes) return;
  sink_.Write(w_.text());
  w_.Clear();
}

// Category to ts; the event's brace stays open.
void ChromeWriter::Common(std::string_view category, std::string_view name, int64_t pid,
                          int64_t tid, TraceTime time) {
  if (!category.empty()) {
    w_.Raw(",\"cat\":");
    w_.Quoted(category);
  }
  w_.Raw(",\"name\":");
  w_.Quoted(name);
  w_.Raw(",\"pid\":");
  w_.Integer(pid);
  w_.Raw(",\"tid\":");
  w_.Integer(tid);
  w_.Raw(",\"ts\":");
  w_.Microseconds(Shifted(time.ns));
}

bool ChromeWriter::HasArg(std::string_view key) const {
  for (const Arg& arg : args_) {
    if (arg_keys_->strings().View(arg.key) == key) return true;
  }
  return false;
}

// Whether the arguments themselves say that the row belongs to this stream.
bool ChromeWriter::SaysStream(int64_t stream) const {
  for (const Arg& arg : args_) {
    if (arg.value.type == ArgValue::Type::kInt && arg_keys_->strings().View(arg.key) == "stream") {
      return arg.value.integer == stream;
    }
  }
  return false;
}

// A complete event with its arguments, `extras` that they lack, and its true tid on a lane.
void ChromeWriter::Complete(Table table, const EventColumns& columns, uint32_t row,
                            std::string_view category, std::string_view name,
                            std::span<const Extra> extras) {
  const TrackId track = columns.track[row];
  const ChromeLanes::Place place = PlaceOf(track);
  const int64_t tid = lanes_.TidOf(table, row, track);
  BeginEvent();
  w_.Raw("{\"ph\":\"X\"");
  Common(category, name, place.pid, tid, columns.begin[row]);
  w_.Raw(",\"dur\":");
  w_.Microseconds((columns.end(row) - columns.begin[row]).ns);
  TakeArgs(table, row);
  const auto add = [&](std::string_view key, int64_t value) {
    added_.push_back({key, {.type = ArgValue::Type::kInt, .integer = value}});
  };
  if (is_recording_) {
    for (const Extra& extra : extras) {
      if (extra.value != kNoCorrelation && !HasArg(extra.key)) add(extra.key, extra.value);
    }
  }
  const bool on_stream = trace_.tracks[Index(track)].kind == TrackKind::kStream;
  const bool of_unknown_kind =
      table == Table::kRanges && trace_.ranges.kind[row] == RangeKind::kDeviceRow;
  if (of_unknown_kind) {
    add(kTrueStreamKey, place.tid);
  } else if (tid != place.tid && !(on_stream && SaysStream(place.tid))) {
    add(kTrueTidKey, place.tid);
  }
  if (rank_ != nullptr) RenameIds();
  w_.Arguments(args_, *arg_keys_, nullptr, added_);
  added_.clear();
  w_.Char('}');
  EndEvent();
}

// Gives the ids among args_ and added_ their numbers in the file of several ranks.
void ChromeWriter::RenameIds() {
  const size_t from_columns = added_.size();
  const auto rename = [&](std::string_view key, ArgValue& value) {
    for (const IdKey& id_key : kIdKeys) {
      if (key != id_key.key || value.type != ArgValue::Type::kInt) continue;
      bool fits = true;
      const ArgValue original = value;
      value.integer = rank_->Id(id_key.ids, value.integer, fits);
      if (!fits) added_.push_back({id_key.original_key, original});
    }
  };
  for (Arg& arg : args_) rename(arg_keys_->strings().View(arg.key), arg.value);
  for (size_t i = 0; i < from_columns; ++i) {
    ArgValue value = added_[i].value;
    rename(added_[i].key, value);
    added_[i].value = value;
  }
}

// The same for a flow, whose id may have stood there as a text, too.
int64_t ChromeWriter::RenameFlow(int64_t id) {
  bool fits = true;
  const int64_t renamed = rank_->Id(RankIds::kFlow, id, fits);
  if (!fits) added_.push_back({kFlowIdKey, {.type = ArgValue::Type::kInt, .integer = id}});
  for (const Arg& arg : args_) {
    if (arg_keys_->strings().View(arg.key) == "^id") added_.push_back({kFlowTextKey, arg.value});
  }
  return renamed;
}

void ChromeWriter::TakeArgs(Table table, uint32_t row) {
  const StringTable& texts = SpellArguments(trace_, table, Row{row}, spelled_, args_);
  arg_keys_ = &texts == &spelled_ ? &spelled_keys_ : &keys_;
}

void ChromeWriter::Args(Table table, uint32_t row) {
  TakeArgs(table, row);
  if (rank_ != nullptr) RenameIds();
  w_.Arguments(args_, *arg_keys_, nullptr, added_);
  added_.clear();
}

// The source's word; for recordings, whose word is an NVTX domain, Kineto's.
std::string_view ChromeWriter::RangeCategory(uint32_t row) const {
  if (!is_recording_) return trace_.Text(trace_.ranges.category[row]);
  switch (trace_.ranges.kind[row]) {
    case RangeKind::kUserAnnotation:
      return "user_annotation";
    case RangeKind::kCpuOp:
      return "cpu_op";
    case RangeKind::kPythonFunction:
      return "python_function";
    case RangeKind::kOverhead:
      return "overhead";
    case RangeKind::kGpuAnnotation:
      return "gpu_user_annotation";
    case RangeKind::kDeviceRow:
    case RangeKind::kOther:
      break;
  }
  return "user_annotation";
}

// HTA and TensorBoard know steps by the name ProfilerStep#N: the range's own counter, or its number
// on the track. Empty for what is no step.
std::string ChromeWriter::StepName(uint32_t row) {
  const std::string_view name = trace_.Text(trace_.ranges.name[row]);
  if (!is_recording_ || trace_.ranges.kind[row] != RangeKind::kUserAnnotation ||
      !trace_.Facts(trace_.ranges.name[row]).is_step || name.starts_with("ProfilerStep#")) {
    return {};
  }
  steps_of_track_.resize(trace_.tracks.size());
  const int64_t number = steps_of_track_[Index(trace_.ranges.track[row])]++;
  const size_t digits = name.find_first_of("0123456789");
  if (digits != std::string_view::npos) return fmt::format("ProfilerStep#{}", name.substr(digits));
  return fmt::format("ProfilerStep#{}", number);
}

// An import's is among its arguments.
void ChromeWriter::AddStack(StackId stack, std::string_view key) {
  if (!is_recording_ || stack == kNoStack) return;
  const auto [text, is_new] = stack_texts_.try_emplace(stack);
  if (is_new) text->second = StackSpelled(trace_, stack);
  added_.push_back({.key = key, .text = text->second});
}

// One on each of the first ranges of its name.
void ChromeWriter::AddOpenings(uint32_t range) {
  const StringId name = trace_.ranges.name[range];
  if (openings_.empty() || !is_opened_[Index(name)]) return;
  const ProcessId process = trace_.ProcessOf(trace_.ranges.track[range]);
  const auto left = openings_.find({process, name});
  if (left == openings_.end()) return;
  AddStack(left->second.back(), kOpenedAtKey);
  left->second.pop_back();
  if (left->second.empty()) openings_.erase(left);
}

// An import's stands there, too.
void ChromeWriter::AddWord(std::string_view key, NamedValue auto value) {
  if (is_recording_ && value != decltype(value){}) {
    added_.push_back({.key = key, .text = NameOf(value)});
  }
}

void ChromeWriter::WriteRanges() {
  const RangeTable& ranges = trace_.ranges;
  if (!trace_.openings.empty()) is_opened_.resize(trace_.strings.size());
  for (const Opening& opening : trace_.openings) {
    if (trace_.Facts(opening.name).is_step) continue;  // which have another name in the file
    openings_[{opening.process, opening.name}].push_back(opening.stack);
    is_opened_[Index(opening.name)] = true;
  }
  for (uint32_t row = 0; row < ranges.size(); ++row) {
    const std::string step = StepName(row);
    if (!step.empty()) {
      added_.push_back({"name", {.type = ArgValue::Type::kString, .text = ranges.name[row]}});
    }
    if (is_recording_ && ranges.category[row] != kEmptyString) {
      added_.push_back({"domain", {.type = ArgValue::Type::kString, .text = ranges.category[row]}});
    }
    if (ranges.kind[row] != RangeKind::kPythonFunction) AddStack(ranges.stack[row]);
    AddOpenings(row);
    Complete(Table::kRanges, ranges, row, RangeCategory(row),
             step.empty() ? trace_.Text(ranges.name[row]) : std::string_view(step), {});
  }
}

void ChromeWriter::WriteApi() {
  const ApiTable& api = trace_.api;
  for (uint32_t row = 0; row < api.size(); ++row) {
    const std::string_view name = trace_.Text(api.name[row]);
    std::string_view category = trace_.Text(api.category[row]);
    const bool is_driver = name.starts_with("cu") && !name.starts_with("cuda");
    if (is_recording_) category = is_driver ? "cuda_driver" : "cuda_runtime";
    AddStack(api.stack[row]);
    const Extra extras[] = {{"correlation", api.correlation[row]}};
    Complete(Table::kApi, api, row, category, name, extras);
  }
}

void ChromeWriter::WriteDeviceOps() {
  const DeviceOpTable& ops = trace_.device_ops;
  constexpr std::string_view kWords[] = {"kernel", "gpu_memcpy", "gpu_memset"};
  for (uint32_t row = 0; row < ops.size(); ++row) {
    const Track& track = trace_.tracks[Index(ops.track[row])];
    const int64_t device =
        track.device != kNoDevice ? trace_.devices[Index(track.device)].id : kNoCorrelation;
    const bool has_bytes = ops.kind[row] != DeviceOpKind::kKernel;
    const Extra extras[] = {{"device", device},
                            {"stream", track.tid},
                            {"correlation", ops.correlation[row]},
                            {"bytes", has_bytes ? ops.bytes[row] : kNoCorrelation}};
    Complete(
        Table::kDeviceOps, ops, row,
        is_recording_ ? kWords[static_cast<size_t>(ops.kind[row])] : trace_.Text(ops.category[row]),
        trace_.Text(ops.name[row]), extras);
  }
}

// Its named columns are arguments.
template <class T>
void ChromeWriter::WriteDescribed(Table which, const T& table) {
  for (uint32_t row = 0; row < table.size(); ++row) {
    extras_.clear();
    if (T::kOnStreams) {
      extras_.push_back({"stream", trace_.tracks[Index(table.track[row])].tid});
    }
    ForEachNamedColumn(table, [&]<class C>(std::string_view name, const std::vector<C>& column) {
      if constexpr (std::is_same_v<C, int64_t>) {
        extras_.push_back({name, column[row]});
      } else if constexpr (std::is_same_v<C, StackId>) {
        AddStack(column[row]);
      } else if constexpr (NamedValue<C>) {
        AddWord(name, column[row]);
      }
    });
    Complete(which, table, row, is_recording_ ? ChromeWord<T>() : trace_.Text(table.category[row]),
             trace_.Text(table.name[row]), extras_);
  }
}

void ChromeWriter::WritePoints() {
  const auto begin = [&](const EventColumns& table, uint32_t row, StringId category,
                         std::string_view head) {
    const ChromeLanes::Place place = PlaceOf(table.track[row]);
    BeginEvent();
    w_.Raw(head);
    Common(trace_.Text(category), trace_.Text(table.name[row]), place.pid, place.tid,
           table.begin[row]);
  };
  for (uint32_t row = 0; row < trace_.instants.size(); ++row) {
    begin(trace_.instants, row, trace_.instants.category[row], "{\"ph\":\"i\"");
    const char scope = trace_.instants.scope[row];
    if (scope != 0) {
      w_.Raw(",\"s\":");
      w_.Quoted({&scope, 1});
    }
    AddStack(trace_.instants.stack[row]);
    Args(Table::kInstants, row);
    w_.Char('}');
    EndEvent();
  }
  for (uint32_t row = 0; row < trace_.counters.size(); ++row) {
    begin(trace_.counters, row, trace_.counters.category[row], "{\"ph\":\"C\"");
    Args(Table::kCounters, row);
    w_.Char('}');
    EndEvent();
  }
}

void ChromeWriter::WriteFlows() {
  const FlowTable& flows = trace_.flows;
  for (uint32_t row = 0; row < flows.size(); ++row) {
    const ChromeLanes::Place place = PlaceOf(flows.track[row]);
    const int64_t tid = lanes_.TidAt(flows.track[row], flows.begin[row]);
    BeginEvent();
    w_.Raw("{\"ph\":");
    w_.Quoted({&flows.phase[row], 1});
    Common(trace_.Text(flows.category[row]), trace_.Text(flows.name[row]), place.pid, tid,
           flows.begin[row]);
    if (flows.bind[row] != 0) w_.Raw(",\"bp\":\"e\"");
    if (tid != place.tid) {
      added_.push_back({kTrueTidKey, {.type = ArgValue::Type::kInt, .integer = place.tid}});
    }
    TakeArgs(Table::kFlows, row);
    int64_t id = flows.id[row];
    if (rank_ != nullptr) {
      RenameIds();
      id = RenameFlow(id);
    }
    w_.Arguments(args_, *arg_keys_, &id, added_, rank_ != nullptr);
    added_.clear();
    w_.Char('}');
    EndEvent();
  }
}

// A recording has the launch of each operation as a column; viewers want an arrow.
void ChromeWriter::WriteLaunchArrows() {
  const DeviceOpTable& ops = trace_.device_ops;
  int64_t number = 0;
  int64_t id = 0;
  const auto arrow = [&](std::string_view head, TrackId track, int64_t tid, TraceTime time,
                         std::string_view tail) {
    BeginEvent();
    w_.Raw(head);
    Common("ac2g", "ac2g", PlaceOf(track).pid, tid, time);
    w_.Raw(",\"id\":");
    w_.Integer(id);
    w_.Raw(tail);
    EndEvent();
  };
  for (uint32_t row = 0; row < ops.size(); ++row) {
    if (ops.launch[row] == kNoRow) continue;
    const auto launch = static_cast<uint32_t>(ops.launch[row]);
    const TrackId thread = trace_.api.track[launch];
    bool fits = true;
    ++number;
    id = rank_ == nullptr ? number : rank_->Id(RankIds::kFlow, number, fits);
    arrow("{\"ph\":\"s\"", thread, lanes_.TidOf(Table::kApi, launch, thread),
          trace_.api.begin[launch], "}");
    arrow("{\"ph\":\"f\"", ops.track[row], lanes_.TidOf(Table::kDeviceOps, row, ops.track[row]),
          ops.begin[row], ",\"bp\":\"e\"}");
  }
}

// Kept as they came; those with a time begin with "ts":null, which becomes that time. Several ranks
// are told apart by a member of its own: such an event need not have a pid.
void ChromeWriter::WriteOthers() {
  constexpr std::string_view kTimed = "{\"ts\":null";
  const std::string slot =
      rank_ == nullptr ? "" : fmt::format("\"{}\":{}", kSlotKey, rank_->slot());
  for (const OtherEvent& other : trace_.others) {
    const std::string renamed = rank_ == nullptr ? "" : rank_->RenameEvent(trace_.Text(other.json));
    std::string_view json = rank_ == nullptr ? trace_.Text(other.json) : renamed;
    BeginEvent();
    w_.Raw("{");
    w_.Raw(slot);
    json.remove_prefix(other.has_time ? kTimed.size() : 1);
    const bool more = other.has_time || json.find_first_not_of(" \t\r\n") != json.find('}');
    if (!slot.empty() && more) w_.Char(',');
    if (other.has_time) {
      w_.Raw("\"ts\":");
      w_.Microseconds(Shifted(other.begin.ns));
    }
    w_.Raw(json);
    EndEvent();
  }
}

std::vector<int64_t> ChromeWriter::Pids() const {
  std::vector<int64_t> pids;
  for (const Process& process : trace_.processes) pids.push_back(process.pid);
  for (uint32_t i = 0; i < trace_.tracks.size(); ++i) {
    pids.push_back(lanes_.PlaceOf(TrackId{i}).pid);
  }
  if (is_recording_) {
    for (const Device& device : trace_.devices) pids.push_back(device.id);
  }
  for (const OtherEvent& other : trace_.others) {
    int64_t pid = 0;
    if (PidOfEvent(trace_.Text(other.json), pid)) pids.push_back(pid);
  }
  return pids;
}

}  // namespace trainprof
