// Events of torch.profiler (2021 to today, CUDA and ROCm) and of plain Chrome traces.
#include "trace/formats/chrome/chrome_tables.h"

#include <algorithm>

#include "trace/formats/io/json_text.h"

namespace trainprof {
int64_t NumberForText(std::string_view text) {
  uint32_t hash = 2166136261u;  // FNV-1a
  for (char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return -int64_t{0x40000000} - static_cast<int64_t>(hash & 0x3FFFFFFF);
}

ChromeTables::ChromeTables(TraceBuilder& builder, ImportNotes& notes, KeptArgs kept)
    : builder_(builder), notes_(notes), arguments_(builder), kept_(kept), stacks_(builder) {}

ChromeTables::Class ChromeTables::ClassOfWord(std::string_view category) const {
  struct Entry {
    std::string_view word;
    Class cls;
  };
  // The words of 2021 begin with a capital letter.
  static constexpr Entry kWords[] = {
      {"cpu_op", Class::kCpuOp},
      {"Operator", Class::kCpuOp},
      {"user_annotation", Class::kUserAnnotation},
      {"gpu_user_annotation", Class::kGpuAnnotation},
      {"kernel", Class::kKernel},
      {"Kernel", Class::kKernel},
      {"gpu_memcpy", Class::kCopy},
      {"Memcpy", Class::kCopy},
      {"gpu_memset", Class::kMemset},
      {"Memset", Class::kMemset},
      {"Runtime", Class::kApi},
      {"python_function", Class::kPythonFunction},
      {"Python", Class::kPythonFunction},
      {"overhead", Class::kOverhead},
      {"Overhead", Class::kOverhead},
  };
  for (const Entry& entry : kWords) {
    if (entry.word == category) return entry.cls;
  }
  // cuda_runtime, cuda_driver, hip_runtime, xpu_runtime, privateuse1_driver, ...
  if (category.ends_with("_runtime") || category.ends_with("_driver")) return Class::kApi;
  Class cls = Class::kOther;
  ForEachTable(builder_.trace(), [&]<class T>(Table which, const T&) {
    if constexpr (DescribedTable<T>) {
      if (IsChromeWord<T>(category)) {
        cls = static_cast<Class>(static_cast<uint8_t>(Class::kDescribed) +
                                 static_cast<uint8_t>(which));
      }
    }
  });
  return cls;
}

ChromeTables::Class ChromeTables::ClassOf(StringId category) {
  if (Index(category) >= class_of_.size()) {
    class_of_.resize(builder_.trace().strings.size(), Class::kUnknown);
  }
  Class& cls = class_of_[Index(category)];
  if (cls == Class::kUnknown) {
    cls = ClassOfWord(builder_.trace().Text(category));
    is_kineto_ |= cls != Class::kOther;
  }
  return cls;
}

RangeKind ChromeTables::RangeKindOf(Class cls, NameFacts facts) {
  switch (cls) {
    case Class::kUserAnnotation:
      return RangeKind::kUserAnnotation;
    case Class::kCpuOp:  // files of 2021 list the steps among the operators
      return facts.IsTorchAnnotation() ? RangeKind::kUserAnnotation : RangeKind::kCpuOp;
    case Class::kPythonFunction:
      return RangeKind::kPythonFunction;
    case Class::kOverhead:
      return RangeKind::kOverhead;
    case Class::kGpuAnnotation:
      return RangeKind::kGpuAnnotation;
    default:
      return facts.IsTorchAnnotation() ? RangeKind::kUserAnnotation : RangeKind::kOther;
  }
}

void ChromeTables::Add(const ChromeEvent& event, std::string_view raw) {
  if (event.phase == 'M') {
    if (!AddMetadata(event)) KeepVerbatim(event, raw);
    return;
  }
  if (!event.has_time) {
    notes_.Add(Note::kMissingTime);
    KeepVerbatim(event, raw);
    return;
  }
  switch (event.phase) {
    case 'X':
      if (!event.has_duration) notes_.Add(Note::kMissingDuration);
      AddComplete(event);
      break;
    case 'B':
      AddBegin(event);
      break;
    case 'E':
      AddEnd(event);
      break;
    case 'i':
    case 'I':
      builder_.AddInstant(RowOf(event, PointTrackOf(event)), event.scope,
                          arguments_.AllocationOf(event.name, event.args));
      break;
    case 'C':
      builder_.AddCounter(RowOf(event, PointTrackOf(event)));
      break;
    case 's':
    case 't':
    case 'f':
      AddFlow(event);
      break;
    case 'b':
    case 'n':
    case 'e':
    case 'S':
    case 'T':
    case 'p':
    case 'F':
    case 'N':
    case 'O':
    case 'D':
    case 'P':
    case 'R':
    case 'c':
    case 'v':
    case 'V':
    case '(':
    case ')':
      KeepWithTime(event);
      break;
    default:
      notes_.Add(Note::kUnknownPhase);
      KeepVerbatim(event, raw);
  }
}

int64_t ChromeTables::NumberOf(const ChromeId& id) {
  if (id.kind == ChromeId::Kind::kAbsent) return 0;
  if (id.kind != ChromeId::Kind::kText) return id.number;
  const auto [it, is_new] = number_of_text_.try_emplace(id.text, 0);
  if (is_new) {
    it->second = NumberForText(builder_.trace().Text(id.text));
    while (text_of_number_.contains(it->second)) --it->second;
    text_of_number_.emplace(it->second, id.text);
  }
  return it->second;
}

ChromeTables::CachedTrack& ChromeTables::CacheSlot(int64_t pid, int64_t tid, int64_t kind) {
  const auto mix = static_cast<uint64_t>(pid) * 0x9E3779B97F4A7C15ull ^
                   static_cast<uint64_t>(tid) * 0xD6E8FEB86659FD93ull ^
                   static_cast<uint64_t>(kind) * 0xA0761D6478BD642Full;
  return cached_tracks_[(mix >> 40) % cached_tracks_.size()];
}

// The track of (pid, tid), through a small cache: events of one track come in runs.
TrackId ChromeTables::Cached(int64_t pid, int64_t tid, bool stream) {
  const int64_t kind = stream ? 1 : 0;
  CachedTrack& slot = CacheSlot(pid, tid, kind);
  if (Holds(slot, pid, tid, kind)) return slot.track;
  int64_t number = tid;
  if (builder_.trace().tracks.size() >= kMaxTracks) {
    notes_.Add(Note::kTooManyTracks);
    pid = number = NumberForText("too many tracks");
    stream = false;
  }
  const ProcessId process = builder_.FindOrAddProcess(pid);
  const TrackId track = stream ? builder_.FindOrAddStream(process, number)
                               : builder_.FindOrAddThread(process, number);
  if (number == tid) slot = {.pid = pid, .tid = tid, .kind = kind, .track = track};
  return track;
}

TrackId ChromeTables::ThreadOf(const ChromeEvent& event) {
  if (event.pid.kind == ChromeId::Kind::kAbsent || event.tid.kind == ChromeId::Kind::kAbsent) {
    notes_.Add(Note::kMissingThread);
  }
  return TrackOf(event, event.true_tid, false);
}

TrackId ChromeTables::StreamOf(const ChromeEvent& event) {
  const TrackId track =
      TrackOf(event, event.true_tid != ChromeEvent::kNoValue ? event.true_tid : event.stream, true);
  if (event.device >= 0) {
    if (Index(track) >= device_of_track_.size())
      device_of_track_.resize(Index(track) + 1, INT64_MAX);
    int64_t& device = device_of_track_[Index(track)];
    device = std::min(device, event.device);
  }
  return track;
}

// The track of number `number`, or of the event's own tid when that is kNoValue.
TrackId ChromeTables::TrackOf(const ChromeEvent& event, int64_t number, bool stream) {
  const int64_t pid = NumberOf(event.pid);
  const int64_t tid = NumberOf(event.tid);
  if (number == ChromeEvent::kNoValue || number == tid) return Cached(pid, tid, stream);
  if (lanes_.size() < kMaxTracks) lanes_.emplace(Place{pid, tid}, number);
  return Cached(pid, number, stream);
}

TrackId ChromeTables::PointTrackOf(const ChromeEvent& event) {
  constexpr int64_t kPoints = 2;  // beside threads and streams
  int64_t pid = NumberOf(event.pid);
  int64_t tid = event.true_tid != ChromeEvent::kNoValue ? event.true_tid : NumberOf(event.tid);
  CachedTrack& slot = CacheSlot(pid, tid, kPoints);
  if (Holds(slot, pid, tid, kPoints)) return slot.track;
  if (point_tracks_.size() >= kMaxTracks) {
    notes_.Add(Note::kTooManyTracks);
    pid = tid = NumberForText("too many tracks");
  }
  const auto next = static_cast<uint32_t>(point_tracks_.size());
  const auto [it, is_new] = point_track_of_.try_emplace(Place{pid, tid}, next);
  if (is_new) {
    point_tracks_.push_back({{pid, tid}, event.tid.kind == ChromeId::Kind::kStream});
  }
  slot = {.pid = pid, .tid = tid, .kind = kPoints, .track = TrackId{kPointTrack | it->second}};
  return slot.track;
}

Event ChromeTables::RowOf(const ChromeEvent& event, TrackId track) {
  const int64_t end_ns = event.time_ns + event.duration_ns;
  last_end_ns_ = std::max(last_end_ns_, end_ns);
  return {.begin = TraceTime{event.time_ns},
          .end = TraceTime{end_ns},
          .name = event.name,
          .track = track,
          .category = event.category,
          .args = ArgsOf(event),
          .stack = stacks_.Of(event.stack)};
}

// Whether an event of an unknown category says itself that a device did it.
bool ChromeTables::StandsOnStream(const ChromeEvent& event) {
  if (event.on_stream || event.tid.kind == ChromeId::Kind::kStream) return true;
  return event.device >= 0 &&
         (event.stream != ChromeEvent::kNoValue || event.correlation != ChromeEvent::kNoValue);
}

void ChromeTables::AddComplete(const ChromeEvent& event) {
  const Class cls = ClassOf(event.category);
  const NameFacts facts = builder_.Facts(event.name);
  const int64_t correlation = event.correlation == -1 ? kNoCorrelation : event.correlation;
  if (cls >= Class::kDescribed) {
    const int which = static_cast<int>(cls) - static_cast<int>(Class::kDescribed);
    return AddDescribed(static_cast<Table>(which), event, correlation);
  }
  switch (cls) {
    case Class::kApi: {
      const Event row = RowOf(event, ThreadOf(event));
      if (event.api_bytes > 0) {
        const int64_t pid = builder_.process(builder_.track(row.track).process).pid;
        int64_t& bytes = api_bytes_of_[{pid, correlation}];
        bytes = std::max(bytes, event.api_bytes);
      }
      builder_.AddApi(row, facts.api, correlation);
      break;
    }
    case Class::kKernel:
    case Class::kCopy:
    case Class::kMemset:
      AddDeviceOp(event, cls, correlation);
      break;
    case Class::kGpuAnnotation:
      builder_.AddRange(RowOf(event, StreamOf(event)), RangeKind::kGpuAnnotation);
      break;
    case Class::kOther:
      if (StandsOnStream(event)) {
        builder_.AddRange(RowOf(event, StreamOf(event)), RangeKind::kDeviceRow);
        break;
      }
      [[fallthrough]];
    default: {
      Event row = RowOf(event, ThreadOf(event));
      const RangeKind kind = RangeKindOf(cls, facts);
      if (kind == RangeKind::kPythonFunction) row.stack = stacks_.OfFrame(event.name);
      builder_.AddRange(row, kind);
      if (event.opened_at != kEmptyString) {
        const ProcessId process = builder_.track(row.track).process;
        builder_.AddOpening({row.name, process, stacks_.Of(event.opened_at)});
      }
    }
  }
}

void ChromeTables::AddDeviceOp(const ChromeEvent& event, Class cls, int64_t correlation) {
  const Event row = RowOf(event, StreamOf(event));
  DeviceOpDetails details = arguments_.DetailsOf(event.args);
  if (cls == Class::kKernel) {
    builder_.AddDeviceOp(row, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, correlation,
                         details);
    return;
  }
  const bool is_copy = cls == Class::kCopy;
  CopyDirection direction =
      is_copy ? builder_.Facts(event.name).direction : CopyDirection::kUnknown;
  if (is_copy && direction == CopyDirection::kUnknown) {
    direction = builder_.Facts(event.copy_kind).direction;
  }
  const auto [memory, is_new] = memory_of_copy_.try_emplace(event.name);
  if (is_new) memory->second = MemoryKindsOf(builder_.trace().Text(event.name));
  std::tie(details.source, details.target) = memory->second;
  builder_.AddDeviceOp(row, is_copy ? DeviceOpKind::kCopy : DeviceOpKind::kMemset, direction,
                       event.bytes != ChromeEvent::kNoValue ? event.bytes : 0, correlation,
                       details);
}

// Of an argument, or kNoCorrelation.
int64_t ChromeTables::NumberOf(const ChromeEvent& event, std::string_view key) const {
  for (const Arg& arg : event.args) {
    if (arg.value.type == ArgValue::Type::kInt && builder_.trace().Text(arg.key) == key) {
      return arg.value.integer;
    }
  }
  return kNoCorrelation;
}

// Of an argument, or the value 0.
template <NamedValue Value>
Value ChromeTables::WordOf(const ChromeEvent& event, std::string_view key) const {
  const auto names = NamesOf(Value{});
  for (const Arg& arg : event.args) {
    if (arg.value.type != ArgValue::Type::kString || builder_.trace().Text(arg.key) != key)
      continue;
    for (size_t i = 0; i < names.size(); ++i) {
      if (builder_.trace().Text(arg.value.text) == names[i]) return static_cast<Value>(i);
    }
  }
  return Value{};
}

void ChromeTables::AddDescribed(Table which, const ChromeEvent& event, int64_t correlation) {
  ForEachTable(builder_.trace(), [&]<class T>(Table number, T& table) {
    if constexpr (DescribedTable<T>) {
      if (number != which) return;
      const Event row = RowOf(event, T::kOnStreams ? StreamOf(event) : ThreadOf(event));
      std::apply(
          [&](auto&... own) {
            builder_.AddRow(table, row, typename std::decay_t<decltype(own)>::value_type{}...);
          },
          T::OwnColumns(table));
      ForEachNamedColumn(table, [&]<class C>(std::string_view name, std::vector<C>& column) {
        if constexpr (std::is_same_v<C, StringId>) {
          column.back() = row.category;
        } else if constexpr (std::is_same_v<C, StackId>) {
          column.back() = row.stack;
        } else if constexpr (NamedValue<C>) {
          column.back() = WordOf<C>(event, name);
        } else {
          column.back() = name == "correlation" ? correlation : NumberOf(event, name);
        }
      });
      if constexpr (requires { arguments_.ReadColumns(event.args, table); }) {
        arguments_.ReadColumns(event.args, table);
      }
    }
  });
}

size_t ChromeTables::size_bytes() const {
  constexpr size_t kNodeBytes = 80;  // of a map of small keys and values
  return open_bytes_ + member_bytes_ + metadata_.capacity() * sizeof(Metadata) +
         class_of_.capacity() * sizeof(Class) + use_of_key_.capacity() * sizeof(ArgUse) +
         stacks_.size_bytes() +
         kNodeBytes * (open_.size() + lanes_.size() + 2 * point_tracks_.size() +
                       2 * text_of_number_.size() + api_bytes_of_.size() + memory_of_copy_.size());
}

// Of an event that waits for its end: it is moved once more, when all are closed.
size_t ChromeTables::BytesOf(const ChromeEvent& event) {
  return 2 * sizeof(ChromeEvent) + event.args.size() * sizeof(Arg);
}

void ChromeTables::AddBegin(const ChromeEvent& event) {
  last_end_ns_ = std::max(last_end_ns_, event.time_ns);
  open_[{NumberOf(event.pid), NumberOf(event.tid)}].push_back(event);
  open_bytes_ += BytesOf(event);
}

// Ends the innermost open event of the thread; the end's own arguments follow the begin's.
void ChromeTables::AddEnd(const ChromeEvent& event) {
  const auto it = open_.find({NumberOf(event.pid), NumberOf(event.tid)});
  if (it == open_.end() || it->second.empty()) {
    notes_.Add(Note::kUnmatchedEnd);
    KeepWithTime(event);
    return;
  }
  ChromeEvent whole = std::move(it->second.back());
  open_bytes_ -= BytesOf(whole);
  it->second.pop_back();
  whole.phase = 'X';
  whole.duration_ns = event.time_ns - whole.time_ns;
  whole.args.insert(whole.args.end(), event.args.begin(), event.args.end());
  PutFieldsFirst(whole.args, builder_.trace().strings);
  for (int64_t ChromeEvent::*column :
       {&ChromeEvent::device, &ChromeEvent::stream, &ChromeEvent::correlation, &ChromeEvent::bytes,
        &ChromeEvent::api_bytes, &ChromeEvent::true_tid}) {
    if (event.*column != ChromeEvent::kNoValue) whole.*column = event.*column;
  }
  if (event.copy_kind != kEmptyString) whole.copy_kind = event.copy_kind;
  if (whole.stack == kEmptyString) whole.stack = event.stack;
  if (whole.opened_at == kEmptyString) whole.opened_at = event.opened_at;
  AddComplete(whole);
}

void ChromeTables::CloseOpenEvents() {
  std::vector<ChromeEvent> left;
  for (auto& [place, events] : open_) {
    left.insert(left.end(), std::make_move_iterator(events.begin()),
                std::make_move_iterator(events.end()));
  }
  std::stable_sort(left.begin(), left.end(), [](const ChromeEvent& a, const ChromeEvent& b) {
    return a.time_ns < b.time_ns;
  });
  for (ChromeEvent& event : left) {
    notes_.Add(Note::kUnmatchedBegin);
    event.phase = 'X';
    event.duration_ns = last_end_ns_ - event.time_ns;
    AddComplete(event);
  }
  open_.clear();
}

void ChromeTables::AddFlow(const ChromeEvent& event) {
  builder_.AddFlow(RowOf(event, PointTrackOf(event)), event.id, event.phase, event.bind);
}

// Keeps an event whole: its fields as parsed, with "ts":null first in place of its time.
void ChromeTables::KeepWithTime(const ChromeEvent& event) {
  if (event.pid.kind == ChromeId::Kind::kText || event.tid.kind == ChromeId::Kind::kText) {
    PointTrackOf(event);  // so that the texts are kept, as names
  }
  const StringTable& strings = builder_.trace().strings;
  JsonWriter& w = writer_;
  w.Clear();
  w.Raw("{\"ts\":null,\"ph\":");
  w.Quoted({&event.phase, 1});
  if (event.category != kEmptyString) {
    w.Raw(",\"cat\":");
    w.Quoted(strings.View(event.category));
  }
  w.Raw(",\"name\":");
  w.Quoted(strings.View(event.name));
  if (event.pid.kind != ChromeId::Kind::kAbsent) {
    w.Raw(",\"pid\":");
    w.Integer(NumberOf(event.pid));
  }
  if (event.tid.kind != ChromeId::Kind::kAbsent) {
    w.Raw(",\"tid\":");
    w.Integer(NumberOf(event.tid));
  }
  if (event.has_duration) {
    w.Raw(",\"dur\":");
    w.Microseconds(event.duration_ns);
  }
  if (event.bind != 0) w.Raw(",\"bp\":\"e\"");
  if (event.scope != 0) {
    w.Raw(",\"s\":");
    w.Quoted({&event.scope, 1});
  }
  w.Arguments(event.args, keys_, event.has_id ? &event.id : nullptr);
  w.Char('}');
  builder_.AddOther({TraceTime{event.time_ns}, builder_.Intern(w.text()), true});
}

void ChromeTables::KeepVerbatim(const ChromeEvent& event, std::string_view raw) {
  const StringId json =
      event.repaired ? builder_.Intern(json::Repaired(raw)) : builder_.Intern(raw);
  builder_.AddOther({TraceTime{0}, json, false});
}

}  // namespace trainprof
