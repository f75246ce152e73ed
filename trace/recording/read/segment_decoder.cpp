#include "trace/recording/read/segment_decoder.h"

#include <algorithm>
#include <optional>
#include <string>

#include "trace/base/utf8.h"
#include "trace/recording/read/attribute_decoder.h"
#include "trace/recording/read/device_decoder.h"
#include "trace/recording/read/memory_value.h"
#include "trace/recording/read/payload_decoder.h"
#include "trace/recording/read/text_stack.h"
#include "trace/recording/read/thread_time.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::recording {
namespace {

constexpr uint64_t kStillOpen = UINT64_MAX;

struct PendingRange {
  uint64_t begin = 0;
  uint64_t end = kStillOpen;
  StringId name = kEmptyString;
  StringId category = kEmptyString;
  TrackId track{};
  ArgsId args = kNoArgs;
  RangeKind kind = RangeKind::kUserAnnotation;
};

class Decoder {
 public:
  Decoder(const SegmentReader& segment, const SegmentScan& scan, const TickConverter& clock,
          HostTime base, const OnPayload& on_payload, TraceBuilder& builder)
      : segment_(segment),
        scan_(scan),
        clock_(clock),
        base_(base),
        on_payload_(on_payload),
        builder_(builder),
        strings_(builder.trace().strings),
        attributes_(scan, builder),
        structures_(scan.payload_types, builder) {}

  void Run() {
    DescribeProcess();
    NameCells();
    AddGaps();
    CallStacks stacks(segment_, scan_, builder_);
    DeviceDecoder device(segment_.info(), scan_, base_, process_, stacks, builder_);
    device_ = &device;
    stacks.AddOpenings(process_);
    DecodeChunks();
    device.Finish(At(scan_.last_ticks));
    JoinStarts();
    NameThreads();
    CountLosses();
  }

 private:
  void NameCells() {
    for (const auto& [name, value] : scan_.facts) {
      constexpr std::string_view kCell = fact::kPythonCell;
      if (name.starts_with(kCell)) builder_.NameFile(name.substr(kCell.size()), value);
    }
  }

  // Of each writer the records, then the rows: a row's name may stand in any of its records.
  std::vector<const Chunk*> ChunksAsTheyAreDecoded() const {
    std::vector<const Chunk*> order;
    std::vector<const Chunk*> rows;
    for (const Chunk& chunk : segment_.chunks()) {
      if (!rows.empty() && rows.front()->writer != chunk.writer) {
        order.insert(order.end(), rows.begin(), rows.end());
        rows.clear();
      }
      if (chunk.kind == ChunkKind::kRecords) order.push_back(&chunk);
      if (HasKnownRows(chunk)) rows.push_back(&chunk);
    }
    order.insert(order.end(), rows.begin(), rows.end());
    return order;
  }

  static bool HasKnownRows(const Chunk& chunk) {
    return chunk.kind == ChunkKind::kDeviceRows || chunk.kind == ChunkKind::kCallRows;
  }

  void DecodeChunks() {
    ahead_.emplace(segment_, ChunksAsTheyAreDecoded(), on_payload_);
    const Chunk* before = nullptr;
    for (const Chunk& chunk : segment_.chunks()) {
      if (before == nullptr || before->writer != chunk.writer) {
        EndWriter();
        BeginWriter(chunk);
        if (chunk.sequence != 0) LoseChunks(chunk.sequence);
      } else if (chunk.sequence != before->sequence + 1) {
        LoseChunks(chunk.sequence - before->sequence - 1);
      }
      before = &chunk;
      if (chunk.kind == ChunkKind::kRecords) {
        DecodeChunk();
      } else {
        row_chunks_.push_back(&chunk);
      }
    }
    EndWriter();
  }

  void Count(std::string_view kind, QualitySeverity severity, uint64_t count,
             std::string_view detail) {
    if (count == 0) return;
    builder_.quality().Count(kind, severity, static_cast<int64_t>(count), detail);
  }

  TraceTime At(uint64_t ticks) const { return {clock_.ToHost(ticks).ns - base_.ns}; }

  void DescribeProcess() {
    const SegmentInfo& info = segment_.info();
    process_ = builder_.FindOrAddProcess(info.pid);
    constexpr size_t kLongestName = 80;
    bool repaired = false;
    std::string name = RepairUtf8(info.command, &repaired);
    if (name.size() > kLongestName) name = RepairUtf8(name.substr(0, kLongestName), &repaired);
    builder_.process(process_).name = builder_.Intern(name);
    if (info.rank >= 0) {
      builder_.process(process_).labels = builder_.Intern("rank " + std::to_string(info.rank));
    }
  }

  void BeginWriter(const Chunk& chunk) {
    strings_.Clear();
    writer_ = chunk.writer;
    track_is_known_ = false;  // until a THREAD record comes
    thread_time_.Forget();
    last_ticks_ = 0;
  }

  void DecodeRows() {
    for (const Chunk* chunk : row_chunks_) {
      if (!HasKnownRows(*chunk)) {
        Count("unread_chunk", QualitySeverity::kDataLoss, 1,
              "a kind of chunk that this version does not read");
        continue;
      }
      const LoadedChunk* loaded = ahead_->Next(builder_.quality());
      if (loaded == nullptr) {
        LoseChunks(1);
      } else if (!device_->Add(*chunk, loaded->runs, strings_)) {
        Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
              "a chunk whose rows have an impossible size; skipped");
      }
    }
    row_chunks_.clear();
    device_->EndWriter();
  }

  void EndWriter() {
    DecodeRows();
    CloseOpen(scan_.last_ticks, "open_range_at_end",
              "ranges still open where the recording ends; closed at the last time seen");
  }

  void LoseChunks(uint64_t count) {
    Count("lost_chunk", QualitySeverity::kDataLoss, count,
          "chunks that are missing between others of the same thread");
    CloseOpen(last_ticks_, "range_cut_by_damage",
              "ranges whose end lay in a damaged or missing chunk; closed before it");
  }

  void DecodeChunk() {
    const LoadedChunk* loaded = ahead_->Next(scratch_);  // the scan has counted damage
    if (loaded == nullptr) return LoseChunks(1);
    RecordParser parser(loaded->words);
    for (Record record; parser.Next(record);) Take(record);
    Count("unknown_record", QualitySeverity::kDataLoss, parser.unknown(),
          "records of a newer version; skipped");
    if (!parser.damaged()) return;
    Count("corrupt_chunk", QualitySeverity::kDataLoss, 1,
          "a chunk with damaged records; skipped from there");
    CloseOpen(last_ticks_, "range_cut_by_damage",
              "ranges whose end lay in a damaged or missing chunk; closed before it");
  }

  void Take(const Record& record) {
    switch (record.type) {
      case RecordType::kString:
        if (strings_.Define(record)) {
          Count("bad_utf8", QualitySeverity::kWarning, 1, "names that are not UTF-8; repaired");
        }
        return;
      case RecordType::kPayload:
        TakePayload(record);
        return;
      case RecordType::kThread:
        CloseOpen(last_ticks_, "open_range_at_thread_end",
                  "ranges that their thread left open; closed at its last event");
        track_ = builder_.FindOrAddThread(process_, static_cast<int64_t>(record.extra[0]));
        track_is_known_ = true;
        thread_time_.Forget();
        return;
      case RecordType::kThreadTime:
        if (track_is_known_) thread_time_.Take(track_, At(record.value), record.extra);
        break;
      case RecordType::kPush:
        Push(record);
        break;
      case RecordType::kPop:
        Pop(record);
        break;
      case RecordType::kStart:
        starts_.emplace_back(record.extra[0], MakeRange(record, record.extra.subspan(1)));
        break;
      case RecordType::kEnd:
        ends_.emplace(record.extra[0], record.value);
        break;
      case RecordType::kRange:
        TakeRange(record);
        break;
      case RecordType::kMark: {
        const PendingRange mark = MakeRange(record, record.extra);
        const Event event{At(mark.begin), At(mark.begin), mark.name,
                          mark.track,     mark.category,  mark.args};
        if (!AddMemoryValue(event, builder_)) builder_.AddInstant(event, 't');
        break;
      }
      default:
        return;
    }
    last_ticks_ = std::max(last_ticks_, record.value);
  }

  void TakePayload(const Record& record) {
    const auto* bytes = reinterpret_cast<const char*>(record.extra.data() + 1);
    const size_t most = (record.extra.size() - 1) * 8;
    if (record.extra[0] > most) {
      Count("malformed_payload", QualitySeverity::kWarning, 1,
            "structured payloads that are shorter than their schema says");
    }
    payloads_.push_back({record.value, {bytes, std::min<size_t>(record.extra[0], most)}});
  }

  void ForgetPayloads() {
    Count("stray_payload", QualitySeverity::kWarning, payloads_.size(),
          "structured payloads whose event is not in the recording; left out");
    payloads_.clear();
  }

  PendingRange MakeRange(const Record& record, std::span<const uint64_t> attributes) {
    bool known = true;
    PendingRange range;
    range.begin = record.value;
    range.name = strings_.Get(record.id, &known);
    if (!known) {
      range.name = builder_.Intern("(name lost)");
      Count("lost_name", QualitySeverity::kWarning, 1, "events whose name was in a lost chunk");
    }
    if (!track_is_known_) {
      // A track of its own: these events must not mix with those of a known thread.
      track_ = builder_.FindOrAddThread(process_, -1 - static_cast<int64_t>(writer_));
      Count("lost_thread", QualitySeverity::kWarning, 1, "events whose thread was in a lost chunk");
    }
    range.category = DomainName(record.domain);
    if (record.domain != 0 && builder_.trace().Text(range.category) == kOperatorDomain) {
      const bool is_module = builder_.trace().Text(range.name).starts_with(kModulePrefix);
      range.kind = RangeKind::kCpuOp;
      range.category = is_module ? builder_.Intern("module") : kEmptyString;
    }
    range.track = track_;
    if (attributes.empty() && payloads_.empty()) return range;
    args_.clear();
    attributes_.Decode(record.domain, attributes, args_);
    for (const Structure& payload : payloads_) {
      structures_.Decode(record.domain, payload.schema, payload.bytes, args_);
    }
    payloads_.clear();
    if (!args_.empty()) range.args = builder_.AddArgs(args_);
    return range;
  }

  // Its times are the host's already.
  void TakeRange(const Record& record) {
    const PendingRange range = MakeRange(record, {});
    const TraceTime begin{static_cast<int64_t>(record.extra[0] - static_cast<uint64_t>(base_.ns))};
    const TraceTime end{static_cast<int64_t>(record.extra[1] - static_cast<uint64_t>(base_.ns))};
    const bool is_ours = builder_.trace().Text(range.name) == kMemorySearch;
    builder_.AddRange({begin, end, range.name, range.track, range.category, range.args,
                       StackOf(static_cast<uint32_t>(record.extra[2]))},
                      is_ours ? RangeKind::kOverhead : RangeKind::kUserAnnotation);
  }

  // Of the text that a writer gave that id.
  StackId StackOf(uint32_t id) {
    bool known = true;
    const StringId text = strings_.Get(id, &known);
    if (text == kEmptyString || !known) return kNoStack;
    const auto [stack, is_new] = text_stacks_.try_emplace(text, kNoStack);
    if (is_new) stack->second = AddTextStack(builder_, std::string(builder_.trace().Text(text)));
    return stack->second;
  }

  StringId DomainName(uint32_t domain) {
    if (domain == 0) return kEmptyString;
    const auto [name, is_new] = domain_names_.try_emplace(domain, kEmptyString);
    if (is_new) {
      const auto it = scan_.domains.find(domain);
      name->second = builder_.Intern(it == scan_.domains.end() ? "(domain lost)" : it->second);
    }
    return name->second;
  }

  void Push(const Record& record) {
    if (stacks_.size() <= record.domain) stacks_.resize(record.domain + 1);
    stacks_[record.domain].push_back(static_cast<uint32_t>(pending_.size()));
    ++open_;
    pending_.push_back(MakeRange(record, record.extra));
  }

  void Pop(const Record& record) {
    if (record.domain >= stacks_.size() || stacks_[record.domain].empty()) {
      Count("unmatched_pop", QualitySeverity::kWarning, 1,
            "ends of ranges whose start is not in the recording");
      return;
    }
    PendingRange& range = pending_[stacks_[record.domain].back()];
    stacks_[record.domain].pop_back();
    range.end = record.value;
    if (--open_ == 0) Flush();
  }

  void AddRange(const PendingRange& range) {
    // Of loaders and optimizers hooks tell more.
    if (range.kind == RangeKind::kCpuOp && builder_.Facts(range.name).IsTorchAnnotation()) return;
    builder_.AddRange({At(range.begin), At(std::max(range.begin, range.end)), range.name,
                       range.track, range.category, range.args},
                      range.kind);
  }

  // In the order of their pushes, so that a parent stands before a child of the same times.
  void Flush() {
    for (const PendingRange& range : pending_) AddRange(range);
    pending_.clear();
  }

  void CloseOpen(uint64_t ticks, std::string_view kind, std::string_view detail) {
    ForgetPayloads();
    for (PendingRange& range : pending_) {
      if (range.end == kStillOpen) range.end = std::max(range.begin, ticks);
    }
    for (auto& stack : stacks_) stack.clear();
    Count(kind, QualitySeverity::kWarning, open_, detail);
    open_ = 0;
    Flush();
  }

  void JoinStarts() {
    uint64_t still_open = 0;
    for (auto& [id, range] : starts_) {
      const auto end = ends_.find(id);
      if (end == ends_.end()) {
        ++still_open;
        range.end = scan_.last_ticks;
      } else {
        range.end = end->second;
        ends_.erase(end);
      }
      AddRange(range);
    }
    Count("open_range_at_end", QualitySeverity::kWarning, still_open,
          "ranges still open where the recording ends; closed at the last time seen");
    Count("unmatched_end", QualitySeverity::kWarning, ends_.size(),
          "ends of ranges whose start is not in the recording");
  }

  void AddGap(uint64_t begin, uint64_t end, const char* reason, GapKind kind = GapKind::kAll) {
    if (end <= begin) return;
    builder_.AddGap({{At(begin), At(end)}, process_, builder_.Intern(reason), kind});
  }

  void AddGapsOf(GapReason reason, GapKind kind, const char* name) {
    bool closed = false;
    uint64_t begin = 0;
    for (const GapMark& mark : scan_.gaps) {
      if (mark.reason != reason) continue;
      if (mark.begin && !closed) begin = mark.ticks;
      if (!mark.begin && closed) AddGap(begin, mark.ticks, name, kind);
      closed = mark.begin;
    }
    if (closed) AddGap(begin, scan_.last_ticks, name, kind);
  }

  void AddGaps() {
    AddGapsOf(GapReason::kWindow, GapKind::kAll, "window");
    AddGapsOf(GapReason::kDevice, GapKind::kDevice, "GPU detail off");
    AddGapsOf(GapReason::kLent, GapKind::kDevice, "another profiler has the GPU");
    const SegmentInfo& info = segment_.info();
    if (info.first_drop_ticks != 0) {
      AddGap(info.first_drop_ticks, scan_.last_ticks,
             info.failed ? "recording failed" : "size bound");
    }
  }

  void NameThreads() {
    for (const auto& [tid, name] : scan_.threads)
      builder_.track(builder_.FindOrAddThread(process_, tid)).name = builder_.Intern(name);
  }

  void CountLosses() {
    using enum QualitySeverity;
    const SegmentInfo& i = segment_.info();
    const std::string who = "process " + std::to_string(i.pid);
    if (i.dropped_detail != 0) {
      Count("thinned_events", kDataLoss, i.dropped_detail,
            who + ": the size bound came near, only phases and steps were kept from " +
                Seconds(i.first_detail_drop_ticks) + " on");
    }
    if (i.dropped_all != 0) {
      Count("dropped_events", kDataLoss, i.dropped_all,
            who +
                (i.failed ? ": recording failed, nothing was kept from "
                          : ": the size bound was reached, nothing was kept from ") +
                Seconds(i.first_drop_ticks) + " on");
    }
    if (i.failed) Count("recording_failed", kDataLoss, 1, who + ": " + i.failure);
    Count("dropped_reentrant", kDataLoss, i.dropped_reentrant,
          "NVTX calls of a signal handler that interrupted another one");
    Count("dropped_too_deep", kDataLoss, i.dropped_too_deep, "ranges nested deeper than 1024");
    Count("truncated_string", kWarning, i.truncated_strings, "names longer than 4096 bytes; cut");
    Count("unmatched_pop", kWarning, i.unmatched_pops,
          "ends of ranges whose start is not in the recording");
    Count("cut_by_window", kInfo, i.cut_by_window,
          "ranges that were open when the recording window began; left out");
    Count("overflowed_domain", kWarning, i.overflowed_domains,
          "NVTX domains beyond 4095; recorded as one");
  }

  std::string Seconds(uint64_t ticks) const {
    const int64_t ms = At(ticks).ns / 1'000'000;
    return std::to_string(ms / 1000) + "." + std::to_string(ms % 1000 / 100) + " s";
  }

  const SegmentReader& segment_;
  const SegmentScan& scan_;
  const TickConverter& clock_;
  const HostTime base_;
  const OnPayload& on_payload_;
  TraceBuilder& builder_;
  WriterStrings strings_;
  AttributeDecoder attributes_;
  PayloadDecoder structures_;
  Quality scratch_;
  std::optional<ReadAhead> ahead_;
  DeviceDecoder* device_ = nullptr;
  std::vector<const Chunk*> row_chunks_;  // of the present writer

  ProcessId process_{};
  TrackId track_{};
  ThreadTime thread_time_{builder_};
  bool track_is_known_ = false;
  uint32_t writer_ = 0;
  uint64_t last_ticks_ = 0;  // of the present writer
  std::vector<PendingRange> pending_;
  std::vector<std::vector<uint32_t>> stacks_;  // by domain: indices into pending_
  uint64_t open_ = 0;
  struct Structure {
    uint64_t schema;
    std::string bytes;
  };
  std::vector<Structure> payloads_;  // of the writer's next event
  std::vector<Arg> args_;            // of the event that is being made
  std::unordered_map<uint32_t, StringId> domain_names_;
  std::unordered_map<StringId, StackId> text_stacks_;
  std::vector<std::pair<uint64_t, PendingRange>> starts_;  // by range id
  std::unordered_map<uint64_t, uint64_t> ends_;            // range id -> ticks
};

}  // namespace

ExpectedRows RowsOf(const SegmentReader& segment, const SegmentScan& scan) {
  // The directory of a damaged file may claim anything; sealed segments shrink to 1/40.
  constexpr uint64_t kMostExpansion = 256;
  ExpectedRows rows;
  rows.ranges = scan.events - scan.rows;
  for (const Chunk& chunk : segment.chunks()) {
    if (chunk.kind == ChunkKind::kDeviceRows) rows.device_ops += chunk.payload_bytes;
    if (chunk.kind == ChunkKind::kCallRows) rows.calls += chunk.payload_bytes;
  }
  const uint64_t most_bytes = segment.file_bytes() * kMostExpansion;
  rows.device_ops = std::min(rows.device_ops, most_bytes) / sizeof(DeviceRow);
  rows.calls = std::min(rows.calls, most_bytes) / sizeof(CallRow);
  return rows;
}

void DecodeSegment(const SegmentReader& segment, const SegmentScan& scan,
                   const TickConverter& clock, HostTime base, const OnPayload& on_payload,
                   TraceBuilder& builder) {
  Decoder(segment, scan, clock, base, on_payload, builder).Run();
}

}  // namespace trainprof::recording
