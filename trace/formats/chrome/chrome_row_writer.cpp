// An event of each row, in the order of its fields: phase, category, name, place, time, arguments.
#include "trace/formats/chrome/chrome_row_writer.h"

#include <fmt/format.h>

#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/kineto_words.h"

namespace trainprof {

ChromeRowWriter::ChromeRowWriter(const ChromeLayout& layout)
    : layout_(layout),
      trace_(layout.trace()),
      lanes_(layout.lanes()),
      rank_(layout.rank()),
      is_recording_(layout.is_recording()) {
  for (uint32_t i = 0; i < trace_.tracks.size(); ++i) {
    const ChromeLanes::Place place = layout.PlaceOf(TrackId{i});
    places_.push_back(place);
    heads_.push_back(fmt::format(",\"pid\":{},\"tid\":{},\"ts\":", place.pid, place.tid));
  }
}

void ChromeRowWriter::Write(const ChromePiece& piece, std::string& text) {
  w_.Begin(text);
  switch (piece.kind) {
    case ChromePiece::Kind::kTable:
      WriteTable(piece);
      break;
    case ChromePiece::Kind::kLaunchArrows:
      WriteLaunchArrows(piece);
      break;
    case ChromePiece::Kind::kOthers:
      for (uint32_t row = piece.first; row < piece.last; ++row) WriteOther(trace_.others[row]);
      break;
  }
  w_.End(text);
}

void ChromeRowWriter::WriteTable(const ChromePiece& piece) {
  const auto each_row = [&](auto write) {
    for (uint32_t row = piece.first; row < piece.last; ++row) write(row);
  };
  switch (piece.table) {
    case Table::kRanges:
      return each_row([this](uint32_t row) { WriteRange(row); });
    case Table::kApi:
      return each_row([this](uint32_t row) { WriteApi(row); });
    case Table::kDeviceOps:
      return each_row([this](uint32_t row) { WriteDeviceOp(row); });
    case Table::kInstants:
      return each_row([this](uint32_t row) { WriteInstant(row); });
    case Table::kCounters:
      return each_row([this](uint32_t row) { WriteCounter(row); });
    case Table::kFlows:
      return each_row([this](uint32_t row) { WriteFlow(row); });
    default:
      ForEachTable(trace_, [&]<class T>(Table which, const T& table) {
        if constexpr (DescribedTable<T>) {
          if (which != piece.table) return;
          each_row([&](uint32_t row) { WriteDescribed(which, table, row); });
        }
      });
  }
}

// Category to ts; the event's brace stays open.
void ChromeRowWriter::Common(std::string_view category, std::string_view name, TrackId track,
                             int64_t tid, TraceTime time) {
  if (!category.empty()) {
    w_.Raw(",\"cat\":");
    w_.Quoted(category);
  }
  w_.Raw(",\"name\":");
  w_.Quoted(name);
  if (const ChromeLanes::Place place = places_[Index(track)]; tid == place.tid) {
    w_.Raw(heads_[Index(track)]);
  } else {
    w_.Raw(",\"pid\":");
    w_.Integer(place.pid);
    w_.Raw(",\"tid\":");
    w_.Integer(tid);
    w_.Raw(",\"ts\":");
  }
  w_.Microseconds(layout_.Shifted(time.ns));
}

bool ChromeRowWriter::HasArg(std::string_view key) const {
  for (const Arg& arg : args_) {
    if (arg_keys_->strings().View(arg.key) == key) return true;
  }
  return false;
}

// Whether the arguments themselves say that the row belongs to this stream.
bool ChromeRowWriter::SaysStream(int64_t stream) const {
  for (const Arg& arg : args_) {
    if (arg.value.type == ArgValue::Type::kInt && arg_keys_->strings().View(arg.key) == "stream") {
      return arg.value.integer == stream;
    }
  }
  return false;
}

// A complete event with its arguments, `extras` that they lack, and its true tid on a lane.
void ChromeRowWriter::Complete(Table table, const EventColumns& columns, uint32_t row,
                               std::string_view category, std::string_view name,
                               std::span<const Extra> extras) {
  const TrackId track = columns.track[row];
  const int64_t own_tid = places_[Index(track)].tid;
  const int64_t tid = lanes_.TidOf(table, row, track);
  w_.Raw(",\n{\"ph\":\"X\"");
  Common(category, name, track, tid, columns.begin[row]);
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
    add(kTrueStreamKey, own_tid);
  } else if (tid != own_tid && !(on_stream && SaysStream(own_tid))) {
    add(kTrueTidKey, own_tid);
  }
  if (rank_ != nullptr) RenameIds();
  w_.Arguments(args_, *arg_keys_, nullptr, added_);
  added_.clear();
  w_.Char('}');
}

// Gives the ids among args_ and added_ their numbers in the file of several ranks.
void ChromeRowWriter::RenameIds() {
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
int64_t ChromeRowWriter::RenameFlow(int64_t id) {
  bool fits = true;
  const int64_t renamed = rank_->Id(RankIds::kFlow, id, fits);
  if (!fits) added_.push_back({kFlowIdKey, {.type = ArgValue::Type::kInt, .integer = id}});
  for (const Arg& arg : args_) {
    if (arg_keys_->strings().View(arg.key) == "^id") added_.push_back({kFlowTextKey, arg.value});
  }
  return renamed;
}

void ChromeRowWriter::TakeArgs(Table table, uint32_t row) {
  const StringTable& texts = SpellArguments(trace_, table, Row{row}, spelled_, args_);
  arg_keys_ = &texts == &spelled_ ? &spelled_keys_ : &keys_;
}

void ChromeRowWriter::Args(Table table, uint32_t row) {
  TakeArgs(table, row);
  if (rank_ != nullptr) RenameIds();
  w_.Arguments(args_, *arg_keys_, nullptr, added_);
  added_.clear();
}

// The source's word; for recordings, whose word is an NVTX domain, Kineto's.
std::string_view ChromeRowWriter::RangeCategory(uint32_t row) const {
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

// An import's is among its arguments.
void ChromeRowWriter::AddStack(StackId stack, std::string_view key) {
  if (!is_recording_ || stack == kNoStack) return;
  const auto [text, is_new] = stack_texts_.try_emplace(stack);
  if (is_new) text->second = StackSpelled(trace_, stack);
  added_.push_back({.key = key, .text = text->second});
}

// An import's stands there, too.
void ChromeRowWriter::AddWord(std::string_view key, NamedValue auto value) {
  if (is_recording_ && value != decltype(value){}) {
    added_.push_back({.key = key, .text = NameOf(value)});
  }
}

void ChromeRowWriter::WriteRange(uint32_t row) {
  const RangeTable& ranges = trace_.ranges;
  const std::string step = layout_.StepName(row);
  if (!step.empty()) {
    added_.push_back({"name", {.type = ArgValue::Type::kString, .text = ranges.name[row]}});
  }
  if (is_recording_ && ranges.category[row] != kEmptyString) {
    added_.push_back({"domain", {.type = ArgValue::Type::kString, .text = ranges.category[row]}});
  }
  if (ranges.kind[row] != RangeKind::kPythonFunction) AddStack(ranges.stack[row]);
  AddStack(layout_.OpeningOf(row), kOpenedAtKey);
  Complete(Table::kRanges, ranges, row, RangeCategory(row),
           step.empty() ? trace_.Text(ranges.name[row]) : std::string_view(step), {});
}

void ChromeRowWriter::WriteApi(uint32_t row) {
  const ApiTable& api = trace_.api;
  const std::string_view name = trace_.Text(api.name[row]);
  std::string_view category = trace_.Text(api.category[row]);
  const bool is_driver = name.starts_with("cu") && !name.starts_with("cuda");
  if (is_recording_) category = is_driver ? "cuda_driver" : "cuda_runtime";
  AddStack(api.stack[row]);
  const Extra extras[] = {{"correlation", api.correlation[row]}};
  Complete(Table::kApi, api, row, category, name, extras);
}

void ChromeRowWriter::WriteDeviceOp(uint32_t row) {
  const DeviceOpTable& ops = trace_.device_ops;
  constexpr std::string_view kWords[] = {"kernel", "gpu_memcpy", "gpu_memset"};
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

// Its named columns are arguments.
template <class T>
void ChromeRowWriter::WriteDescribed(Table which, const T& table, uint32_t row) {
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

void ChromeRowWriter::WriteInstant(uint32_t row) {
  const InstantTable& instants = trace_.instants;
  w_.Raw(",\n{\"ph\":\"i\"");
  Common(trace_.Text(instants.category[row]), trace_.Text(instants.name[row]), instants.track[row],
         places_[Index(instants.track[row])].tid, instants.begin[row]);
  const char scope = instants.scope[row];
  if (scope != 0) {
    w_.Raw(",\"s\":");
    w_.Quoted({&scope, 1});
  }
  AddStack(instants.stack[row]);
  Args(Table::kInstants, row);
  w_.Char('}');
}

void ChromeRowWriter::WriteCounter(uint32_t row) {
  const CounterTable& counters = trace_.counters;
  w_.Raw(",\n{\"ph\":\"C\"");
  Common(trace_.Text(counters.category[row]), trace_.Text(counters.name[row]), counters.track[row],
         places_[Index(counters.track[row])].tid, counters.begin[row]);
  Args(Table::kCounters, row);
  w_.Char('}');
}

void ChromeRowWriter::WriteFlow(uint32_t row) {
  const FlowTable& flows = trace_.flows;
  const int64_t own_tid = places_[Index(flows.track[row])].tid;
  const int64_t tid = lanes_.TidAt(flows.track[row], flows.begin[row]);
  w_.Raw(",\n{\"ph\":");
  w_.Quoted({&flows.phase[row], 1});
  Common(trace_.Text(flows.category[row]), trace_.Text(flows.name[row]), flows.track[row], tid,
         flows.begin[row]);
  if (flows.bind[row] != 0) w_.Raw(",\"bp\":\"e\"");
  if (tid != own_tid) {
    added_.push_back({kTrueTidKey, {.type = ArgValue::Type::kInt, .integer = own_tid}});
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
}

void ChromeRowWriter::WriteLaunchArrows(const ChromePiece& piece) {
  const DeviceOpTable& ops = trace_.device_ops;
  int64_t number = piece.arrows_before;
  int64_t id = 0;
  const auto arrow = [&](std::string_view head, TrackId track, int64_t tid, TraceTime time,
                         std::string_view tail) {
    w_.Raw(head);
    Common("ac2g", "ac2g", track, tid, time);
    w_.Raw(",\"id\":");
    w_.Integer(id);
    w_.Raw(tail);
  };
  for (uint32_t row = piece.first; row < piece.last; ++row) {
    if (ops.launch[row] == kNoRow) continue;
    const auto launch = static_cast<uint32_t>(ops.launch[row]);
    const TrackId thread = trace_.api.track[launch];
    bool fits = true;
    ++number;
    id = rank_ == nullptr ? number : rank_->Id(RankIds::kFlow, number, fits);
    arrow(",\n{\"ph\":\"s\"", thread, lanes_.TidOf(Table::kApi, launch, thread),
          trace_.api.begin[launch], "}");
    arrow(",\n{\"ph\":\"f\"", ops.track[row], lanes_.TidOf(Table::kDeviceOps, row, ops.track[row]),
          ops.begin[row], ",\"bp\":\"e\"}");
  }
}

// Kept as they came; those with a time begin with "ts":null, which becomes that time. Several ranks
// are told apart by a member of its own: such an event need not have a pid.
void ChromeRowWriter::WriteOther(const OtherEvent& other) {
  constexpr std::string_view kTimed = "{\"ts\":null";
  const std::string slot =
      rank_ == nullptr ? "" : fmt::format("\"{}\":{}", kSlotKey, rank_->slot());
  const std::string renamed = rank_ == nullptr ? "" : rank_->RenameEvent(trace_.Text(other.json));
  std::string_view json = rank_ == nullptr ? trace_.Text(other.json) : renamed;
  w_.Raw(",\n{");
  w_.Raw(slot);
  json.remove_prefix(other.has_time ? kTimed.size() : 1);
  const bool more = other.has_time || json.find_first_not_of(" \t\r\n") != json.find('}');
  if (!slot.empty() && more) w_.Char(',');
  if (other.has_time) {
    w_.Raw("\"ts\":");
    w_.Microseconds(layout_.Shifted(other.begin.ns));
  }
  w_.Raw(json);
}

}  // namespace trainprof
