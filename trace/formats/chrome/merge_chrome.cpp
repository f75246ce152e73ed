// The file's header and all metadata come from the first visit, the events from the second.
#include "trace/formats/chrome/merge_chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "trace/formats/chrome/chrome_writer.h"

namespace trainprof {
namespace {

// Times since 1970 are larger than this (2001-09-09); times since a machine's start are smaller.
constexpr int64_t kEpochClockNs = 1'000'000'000'000'000'000;
// Ranks of one job are profiled together; traces further apart show different moments.
constexpr int64_t kApartNs = 3'600'000'000'000;

struct Rank {
  explicit Rank(RankNamespace own_names) : names(std::move(own_names)) {}

  RankNamespace names;
  int64_t base_ns = 0;
  std::string members;   // "key": value lines with commas
  std::string metadata;  // events
  std::string processes;
  std::string_view kind;
};

std::string_view KindOf(const Trace& trace) {
  return trace.source == SourceKind::kChrome ? "chrome" : "kineto";
}

class Merge {
 public:
  Merge(FileSink& sink, const std::string& path) : sink_(sink), path_(path) {}

  bool Empty() const { return ranks_.empty(); }

  // The first visit.
  void Survey(const Trace& trace) {
    const auto slot = static_cast<uint32_t>(ranks_.size());
    Rank& rank = ranks_.emplace_back(RankNamespace(slot, trace.rank));
    rank.base_ns = trace.base_ns;
    rank.kind = KindOf(trace);
    ChromeWriter writer(trace, sink_, &rank.names);
    for (int64_t pid : writer.Pids()) rank.names.AddPid(pid, used_pids_);
    rank.members = writer.Members();
    rank.metadata = writer.Metadata();
    rank.processes = ProcessesJson(rank.names, writer.processes());
    for (const Device& device : trace.devices) {
      if (device.name == kEmptyString) continue;
      JsonWriter w;
      ChromeWriter::WriteDevice(w, device, trace.Text(device.name));
      devices_.try_emplace(device.id, w.text());
    }
    world_size_ = std::max(world_size_, trace.world_size);
    is_kineto_ |= trace.source != SourceKind::kChrome;
  }

  // Decides what times count from, once all ranks are known.
  void Align() {
    result_.count = ranks_.size();
    const auto [first, last] =
        std::minmax_element(ranks_.begin(), ranks_.end(),
                            [](const Rank& a, const Rank& b) { return a.base_ns < b.base_ns; });
    base_ns_ = WholeMicroseconds(ranks_.front().base_ns);
    if (ranks_.size() < 2) return;
    if (first->base_ns < kEpochClockNs) {
      result_.aligned = false;
      result_.why_not = fmt::format("rank {} has no absolute time", first->names.rank());
    } else if (last->base_ns - first->base_ns > kApartNs) {
      result_.aligned = false;
      result_.why_not =
          fmt::format("ranks {} and {} begin {} s apart", first->names.rank(), last->names.rank(),
                      (last->base_ns - first->base_ns) / 1'000'000'000);
    }
    if (result_.aligned) base_ns_ = WholeMicroseconds(first->base_ns);
  }

  void WriteHead() {
    JsonWriter w;
    w.Raw("{\n");
    if (is_kineto_) {
      w.Raw(fmt::format("\"schemaVersion\": 1,\n\"distributedInfo\": {{\"world_size\": {}}},\n",
                        world_size_));
      w.Raw("\"deviceProperties\": [");
      for (const auto& [id, json] : devices_) {
        w.Raw(id == devices_.begin()->first ? "" : ",\n");
        w.Raw(json);
      }
      w.Raw("],\n");
    }
    w.Raw("\"displayTimeUnit\": \"ms\",\n\"");
    w.Raw(kMergedMember);
    w.Raw(fmt::format("\": {{\"version\": 1, \"aligned\": {}, \"ranks\": [", result_.aligned));
    for (const Rank& rank : ranks_) {
      w.Raw(fmt::format(
          "{}\n{{\"rank\": {}, \"kind\": \"{}\", \"shiftNanoseconds\": {}, \"processes\": [{}],\n"
          "\"members\": {{\n{}",
          rank.names.slot() == 0 ? "" : ",", rank.names.rank(), rank.kind, ShiftOf(rank),
          rank.processes, std::string_view(rank.members).substr(0, rank.members.size() - 2)));
      w.Raw("}}");
    }
    w.Raw(fmt::format("]}},\n\"baseTimeNanoseconds\": {},\n\"traceEvents\": [\n", base_ns_));
    sink_.Write(w.text());
    for (const Rank& rank : ranks_) {
      if (rank.metadata.empty()) continue;
      if (!is_first_) sink_.Write(",\n");
      sink_.Write(rank.metadata);
      is_first_ = false;
    }
  }

  // The second visit.
  Result<void> WriteRank(const Trace& trace) {
    if (written_ == ranks_.size()) return Changed();
    Rank& rank = ranks_[written_++];
    ChromeWriter writer(trace, sink_, &rank.names);
    int64_t ignored = 0;
    for (int64_t pid : writer.Pids()) {
      if (!rank.names.FindPid(pid, ignored)) return Changed();
    }
    if (trace.base_ns != rank.base_ns) return Changed();
    is_first_ = writer.WriteEvents(is_first_, ShiftOf(rank));
    return {};
  }

  Result<MergedRanks> Finish() {
    if (written_ != ranks_.size()) return Changed();
    sink_.Write("\n]}\n");
    const Result<void> done = sink_.Commit();
    if (!done.ok()) return Error{done.error()};
    return result_;
  }

 private:
  int64_t ShiftOf(const Rank& rank) const {
    return result_.aligned ? WholeMicroseconds(rank.base_ns) - base_ns_ : 0;
  }

  Error Changed() const {
    return Error{fmt::format("{}: the input changed while it was read; export it again", path_)};
  }

  // [pid in this file, own pid, name, labels, sort index]; the last three for those that have
  // names.
  static std::string ProcessesJson(const RankNamespace& names,
                                   const std::map<int64_t, ChromeWriter::ProcessNames>& processes) {
    JsonWriter w;
    for (const auto& [pid, renamed] : names.pids()) {
      w.Raw(w.size() == 0 ? "[" : ", [");
      w.Integer(renamed);
      w.Raw(", ");
      w.Integer(pid);
      if (const auto it = processes.find(pid); it != processes.end()) {
        w.Raw(", ");
        w.Quoted(it->second.name);
        w.Raw(", ");
        w.Quoted(it->second.labels);
        w.Raw(", ");
        w.Integer(it->second.sort_index);
      }
      w.Char(']');
    }
    return std::string(w.text());
  }

  FileSink& sink_;
  const std::string& path_;
  std::vector<Rank> ranks_;
  std::set<int64_t> used_pids_;
  std::map<int64_t, std::string> devices_;  // JSON by id; of the first rank that names it
  int64_t world_size_ = 1;
  int64_t base_ns_ = 0;
  bool is_kineto_ = false;
  bool is_first_ = true;
  size_t written_ = 0;
  MergedRanks result_;
};

}  // namespace

Result<MergedRanks> MergeChrome(const VisitRanks& ranks, const std::string& path,
                                const ExportOptions& options) {
  Result<std::unique_ptr<FileSink>> sink = FileSink::Open(path, options.overwrite);
  if (!sink.ok()) return Error{sink.error()};
  Merge merge(*sink.value(), path);
  Result<void> visited = ranks([&](const Trace& trace) -> Result<void> {
    merge.Survey(trace);
    return {};
  });
  if (!visited.ok()) return Error{visited.error()};
  if (merge.Empty()) return Error{fmt::format("{}: no rank to write", path)};
  merge.Align();
  merge.WriteHead();
  visited = ranks([&](const Trace& trace) { return merge.WriteRank(trace); });
  if (!visited.ok()) return Error{visited.error()};
  return merge.Finish();
}

}  // namespace trainprof
