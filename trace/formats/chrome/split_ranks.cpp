// Copies each rank's tracks into a trace of its own, undoing what rank_namespace.h did.
#include "trace/formats/chrome/split_ranks.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "trace/base/cancel.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/chrome_tables.h"
#include "trace/formats/chrome/rank_namespace.h"
#include "trace/formats/io/json_scan.h"
#include "trace/formats/notes.h"

namespace trainprof {
namespace {

using Json = nlohmann::json;

struct NamedProcess {
  int64_t renamed = 0;
  int64_t pid = 0;
  std::string name;
  std::string labels;
  int64_t sort_index = 0;
};

// What kMergedMember says of a rank.
struct RankRecord {
  int64_t shift_ns = 0;
  bool is_kineto = true;
  std::vector<RawMember> members;
  std::map<int64_t, int64_t> pids;  // own pid by the renamed one
  std::vector<NamedProcess> processes;
};

struct MergedRecord {
  bool aligned = true;
  std::vector<RankRecord> ranks;
};

bool ReadProcesses(std::string_view raw, RankRecord& rank) {
  const Json list = Json::parse(raw, nullptr, false);
  if (!list.is_array()) return false;
  for (const Json& item : list) {
    if (!item.is_array() || item.size() < 2) return false;
    if (!item[0].is_number_integer() || !item[1].is_number_integer()) return false;
    rank.pids[item[0].get<int64_t>()] = item[1].get<int64_t>();
    if (item.size() < 5) continue;
    if (!item[2].is_string() || !item[3].is_string() || !item[4].is_number_integer()) return false;
    rank.processes.push_back({item[0].get<int64_t>(), item[1].get<int64_t>(),
                              item[2].get<std::string>(), item[3].get<std::string>(),
                              item[4].get<int64_t>()});
  }
  return true;
}

std::optional<RankRecord> ReadRank(std::string_view raw) {
  RankRecord rank;
  bool has_processes = false;
  for (const RawMember& member : RawMembers(raw)) {
    if (member.key == "shiftNanoseconds") {
      const Json value = Json::parse(member.value, nullptr, false);
      if (!value.is_number_integer()) return std::nullopt;
      rank.shift_ns = value.get<int64_t>();
    }
    if (member.key == "kind") rank.is_kineto = member.value != "\"chrome\"";
    if (member.key == "members") rank.members = RawMembers(member.value);
    if (member.key == "processes") has_processes = ReadProcesses(member.value, rank);
  }
  if (!has_processes) return std::nullopt;
  return rank;
}

// Nothing when the trace is of one rank, or says of its ranks what cannot be read.
std::optional<MergedRecord> ReadRecord(const Trace& trace) {
  MergedRecord record;
  for (const auto& [key, raw] : trace.source_members) {
    if (key != kMergedMember) continue;
    for (const RawMember& member : RawMembers(raw)) {
      if (member.key == "aligned") record.aligned = member.value == "true";
      if (member.key != "ranks") continue;
      for (const RawMember& element : RawMembers(member.value)) {
        std::optional<RankRecord> rank = ReadRank(element.value);
        if (!rank) return std::nullopt;
        record.ranks.push_back(std::move(*rank));
      }
    }
    break;
  }
  if (record.ranks.empty()) return std::nullopt;
  return record;
}

// A text of the file in the table of the rank at work; one list serves all ranks.
struct CopiedText {
  const void* rank = nullptr;
  StringId text = kEmptyString;
};

class RankCopy {
 public:
  RankCopy(const Trace& from, const RankRecord& rank, int64_t merged_base_ns,
           std::vector<CopiedText>& texts)
      : from_(from), rank_(rank), texts_(texts) {
    ApplyMembers();
    builder_.trace().path = from.path;
    // What the file's own time 0 is has moved when it was imported.
    shift_ns_ = from.base_ns - merged_base_ns - rank.shift_ns;
    for (const NamedProcess& named : rank.processes) {
      Process& process = builder_.process(builder_.FindOrAddProcess(named.pid));
      process.name = builder_.Intern(named.name);
      process.labels = builder_.Intern(named.labels);
      process.sort_index = named.sort_index;
    }
  }

  void CopyTrack(TrackId id, int64_t pid) {
    const Track& track = from_.tracks[Index(id)];
    const ProcessId process = builder_.FindOrAddProcess(pid);
    processes_[track.process] = process;
    const TrackId copy = track.kind == TrackKind::kStream
                             ? builder_.FindOrAddStream(process, DeviceOf(track, pid), track.tid)
                             : builder_.FindOrAddThread(process, track.tid);
    Track& made = builder_.track(copy);
    made.name = Copied(track.name);
    made.sort_index = track.sort_index;
    made.order = track.order;
    made.priority = track.priority;
    made.kind = track.kind;
    // An empty text as pid, which only the own number tells.
    if (track.kind == TrackKind::kThread && pid == NumberForText("")) made.kind = TrackKind::kOther;
    CopyRows(id, copy);
  }

  void CopyOther(const OtherEvent& other) {
    const std::string json = OriginalEvent(from_.Text(other.json), rank_.pids);
    const TraceTime begin = other.has_time ? Moved(other.begin) : other.begin;
    builder_.AddOther({begin, builder_.Intern(json), other.has_time});
  }

  Trace Finish() && {
    for (const Opening& opening : from_.openings) {
      const auto process = processes_.find(opening.process);
      if (process == processes_.end()) continue;
      builder_.AddOpening({Copied(opening.name), process->second, Copied(opening.stack)});
    }
    const SourceKind source = rank_.is_kineto ? SourceKind::kKineto : SourceKind::kChrome;
    builder_.trace().source = source;
    return std::move(builder_).Build(true, EqualRows::kByContent);
  }

  Quality& quality() { return builder_.quality(); }

 private:
  // As an import does: devices, the rank, the base of times.
  void ApplyMembers() {
    ImportNotes notes;
    ChromeTables tables(builder_, notes);
    for (const RawMember& member : rank_.members) {
      const Json key = Json::parse("\"" + std::string(member.key) + "\"", nullptr, false);
      if (key.is_string()) tables.AddMember(key.get<std::string>(), std::string(member.value));
    }
    tables.Finish();
  }

  // A stream whose events name no device has its pid's, which was another one in the file.
  int64_t DeviceOf(const Track& track, int64_t pid) const {
    const int64_t device = from_.devices[Index(track.device)].id;
    return device == from_.processes[Index(track.process)].pid ? pid : device;
  }

  StringId Copied(StringId text) {
    CopiedText& copy = texts_[Index(text)];
    if (copy.rank != &rank_) copy = {&rank_, builder_.Intern(from_.Text(text))};
    return copy.text;
  }

  LaunchConfigId Copied(LaunchConfigId id) {
    if (id == kNoLaunchConfig) return id;
    return builder_.FindOrAddLaunchConfig(from_.launch_configs[Index(id)]);
  }

  CollectiveId Copied(CollectiveId id) {
    if (id == kNoCollective) return id;
    Collective collective = from_.collectives[Index(id)];
    for (StringId* text : {&collective.operation, &collective.communicator, &collective.members}) {
      *text = Copied(*text);
    }
    return builder_.AddCollective(collective);
  }

  AllocationId Copied(AllocationId id) {
    if (id == kNoAllocation) return id;
    Allocation allocation = from_.allocations[Index(id)];
    allocation.source = Copied(allocation.source);
    return builder_.AddAllocation(allocation);
  }

  StackId Copied(StackId stack) {
    std::vector<StackId> missing;  // innermost first
    for (; stack != kNoStack && !stacks_.contains(stack); stack = from_.stacks.caller(stack)) {
      missing.push_back(stack);
    }
    StackId copy = stack == kNoStack ? kNoStack : stacks_.at(stack);
    for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
      const CallFrame& frame = from_.stacks.frame(from_.stacks.innermost(*it));
      const FrameId copied = builder_.AddFrame({.function = from_.Text(frame.function),
                                                .file = from_.Text(frame.file),
                                                .line = frame.line,
                                                .module = from_.Text(frame.module),
                                                .offset = frame.offset});
      stacks_[*it] = copy = builder_.AddStack(copied, copy);
    }
    return copy;
  }

  template <class T>
  T Copied(T value) const {
    return value;
  }

  TraceTime Moved(TraceTime time) const {
    return TraceTime{
        static_cast<int64_t>(static_cast<uint64_t>(time.ns) + static_cast<uint64_t>(shift_ns_))};
  }

  void CopyRows(TrackId id, TrackId copy) {
    ForEachTable(from_, [&]<class T>(Table, const T& rows) {
      T& to = std::get<T&>(Trace::Tables(builder_.trace()));
      const auto [first, last] = rows.rows_of(id);
      for (uint32_t row = first; row < last; ++row) {
        CancelPoint(row);
        const Event event = CopiedEvent(rows, row, copy);
        std::apply([&](auto&... own) { builder_.AddRow(to, event, Copied(own[row])...); },
                   T::OwnColumns(rows));
        if constexpr (requires { to.correlation; })
          SetBack(to.correlation, OwnCorrelation(kCorrelationKey, rows.correlation[row]));
        if constexpr (requires { to.waited_record; })
          SetBack(to.waited_record, OwnCorrelation(kWaitedRecordKey, rows.waited_record[row]));
        if constexpr (std::is_same_v<T, FlowTable>) {
          const PlainId plain = WithoutSlot(rows.id[row]);
          SetBack(to.id, plain.is_original ? plain.id : flow_id_);
        }
      }
    });
  }

  Event CopiedEvent(const EventColumns& table, uint32_t row, TrackId copy) {
    CopyArgs(table.args[row]);
    return {.begin = Moved(table.begin[row]),
            .end = Moved(table.end(row)),
            .name = Copied(table.name[row]),
            .track = copy,
            .args = builder_.AddArgs(args_)};
  }

  // The event's arguments with their own ids, in args_.
  void CopyArgs(ArgsId id) {
    args_.clear();
    originals_.clear();
    from_.args.ForEach(id, [&](const Arg& arg) {
      const std::string_view key = from_.Text(arg.key);
      if (IsOriginal(key)) {
        originals_[key].push_back(arg.value);
      } else if (key != kSlotField) {
        args_.push_back(arg);
      }
    });
    own_ids_.fill(std::nullopt);
    flow_id_ = TakeOriginal(kFlowIdKey, {}).integer;
    for (Arg& arg : args_) {
      const std::string_view key = from_.Text(arg.key);
      if (key == "^id") arg.value = TakeOriginal(kFlowTextKey, arg.value);
      if (arg.value.type == ArgValue::Type::kInt) arg.value.integer = OwnId(key, arg.value.integer);
      arg.key = Copied(arg.key);
      if (HasText(arg.value)) arg.value.text = Copied(arg.value.text);
    }
  }

  static constexpr std::string_view kSlotField = "^trainprof slot";
  static bool IsOriginal(std::string_view key) {
    return key == kFlowIdKey || key == kFlowTextKey ||
           std::any_of(std::begin(kIdKeys), std::end(kIdKeys),
                       [&](const IdKey& entry) { return entry.original_key == key; });
  }
  static bool HasText(const ArgValue& value) {
    return value.type == ArgValue::Type::kString || value.type == ArgValue::Type::kJson;
  }

  int64_t OwnId(std::string_view key, int64_t id) {
    for (size_t i = 0; i < std::size(kIdKeys); ++i) {
      if (kIdKeys[i].key != key) continue;
      const PlainId plain = WithoutSlot(id);
      id = plain.is_original ? plain.id : TakeOriginal(kIdKeys[i].original_key, {}).integer;
      // Of those that are said twice the importer counts the last that can be told from none.
      if (id != kNoCorrelation || !own_ids_[i]) own_ids_[i] = id;
    }
    return id;
  }

  // The next of the values that were kept under the key, or `otherwise`.
  ArgValue TakeOriginal(std::string_view key, const ArgValue& otherwise) {
    const auto it = originals_.find(key);
    if (it == originals_.end() || it->second.empty()) return otherwise;
    const ArgValue value = it->second.front();
    it->second.pop_front();
    return value;
  }

  // Of the event whose arguments were copied last; `renamed` where they do not hold it.
  int64_t OwnCorrelation(size_t key, int64_t renamed) {
    if (!own_ids_[key] && renamed != kNoCorrelation) OwnId(kIdKeys[key].key, renamed);
    const int64_t own = own_ids_[key].value_or(kNoCorrelation);
    return own == kNoId ? kNoCorrelation : own;
  }

  const Trace& from_;
  const RankRecord& rank_;
  TraceBuilder builder_;
  std::vector<CopiedText>& texts_;  // by the file's id
  std::map<ProcessId, ProcessId> processes_;
  std::unordered_map<StackId, StackId> stacks_;  // of this rank, by the file's
  std::vector<Arg> args_;
  std::map<std::string_view, std::deque<ArgValue>> originals_;
  std::array<std::optional<int64_t>, std::size(kIdKeys)> own_ids_;  // of the event, by key
  int64_t flow_id_ = 0;
  int64_t shift_ns_ = 0;
};

// What times of the file counted from before the import moved them.
int64_t BaseOfFile(const Trace& trace) {
  int64_t base_ns = trace.base_ns;
  for (const auto& [key, value] : trace.environment) {
    if (key == "baseTimeNanoseconds") json::WholeInteger(value, base_ns);
  }
  return base_ns;
}

// What the file's reader counted, less what each rank counts for itself.
void CopyQuality(const Quality& from, Quality& to) {
  for (const QualityItem& item : from.items()) {
    constexpr std::string_view kOwn[] = {"kernel_without_launch", "copy_without_launch",
                                         "ambiguous_correlation", "launches_without_kernel",
                                         "copies_without_row",    "undelivered_at_end",
                                         "unknown_device_rows"};
    if (std::find(std::begin(kOwn), std::end(kOwn), item.kind) == std::end(kOwn))
      to.Count(item.kind, item.severity, item.count, item.detail);
  }
}

// What a file lost by ending early may be any rank's.
void CopyTruncation(const Quality& from, Quality& to) {
  for (const QualityItem& item : from.items()) {
    if (item.kind == kTruncatedInput) to.Count(item.kind, item.severity, item.count, item.detail);
  }
}

// Which rank each track and other event belongs to.
struct Shares {
  struct Share {
    std::vector<std::pair<TrackId, int64_t>> tracks;  // with their own pid
    std::vector<size_t> others;
  };
  std::vector<Share> ranks;
  int64_t lost_tracks = 0;
};

Shares SharesOf(const Trace& trace, const MergedRecord& record) {
  std::map<int64_t, size_t> slot_of;  // by the renamed pid
  for (size_t slot = 0; slot < record.ranks.size(); ++slot) {
    for (const auto& [renamed, pid] : record.ranks[slot].pids) slot_of.emplace(renamed, slot);
  }
  Shares shares;
  shares.ranks.resize(record.ranks.size());
  for (uint32_t i = 0; i < trace.tracks.size(); ++i) {
    const int64_t pid = trace.processes[Index(trace.tracks[i].process)].pid;
    const auto slot = slot_of.find(pid);
    if (slot == slot_of.end()) {
      ++shares.lost_tracks;
      continue;
    }
    const int64_t own_pid = record.ranks[slot->second].pids.at(pid);
    shares.ranks[slot->second].tracks.emplace_back(TrackId{i}, own_pid);
  }
  for (size_t i = 0; i < trace.others.size(); ++i) {
    const std::string_view json = trace.Text(trace.others[i].json);
    uint32_t slot = 0;
    int64_t pid = 0;
    // Events that this import set aside have their pid only.
    if (!SlotOfEvent(json, slot) && PidOfEvent(json, pid) && slot_of.contains(pid)) {
      slot = static_cast<uint32_t>(slot_of.at(pid));
    }
    shares.ranks[std::min<size_t>(slot, shares.ranks.size() - 1)].others.push_back(i);
  }
  return shares;
}

}  // namespace

std::vector<Trace> SplitRanks(Trace trace) {
  std::vector<Trace> traces;
  const std::optional<MergedRecord> record = ReadRecord(trace);
  if (!record) {
    traces.push_back(std::move(trace));
    return traces;
  }
  const Shares shares = SharesOf(trace, *record);
  std::vector<CopiedText> texts(trace.strings.size());
  for (size_t slot = 0; slot < record->ranks.size(); ++slot) {
    RankCopy copy(trace, record->ranks[slot], BaseOfFile(trace), texts);
    for (const auto& [track, pid] : shares.ranks[slot].tracks) copy.CopyTrack(track, pid);
    for (size_t i : shares.ranks[slot].others) copy.CopyOther(trace.others[i]);
    if (slot != 0) CopyTruncation(trace.quality, copy.quality());
    if (slot == 0) {
      CopyQuality(trace.quality, copy.quality());
      copy.quality().Count("track_of_no_rank", QualitySeverity::kDataLoss, shares.lost_tracks,
                           "threads and streams of processes that the file's list of ranks does "
                           "not know; dropped");
    }
    if (!record->aligned) {
      copy.quality().Count("ranks_not_aligned", QualitySeverity::kInfo, 1,
                           "the file's ranks have no common clock; each starts at 0");
    }
    traces.push_back(std::move(copy).Finish());
  }
  return traces;
}

}  // namespace trainprof
