// The rows of a segment by the run: what rows have in common that differ in their times and
// correlation alone is looked up once.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "trace/recording/device_decoder.h"

namespace trainprof::recording {
namespace {

// Places for looks: more than a training step has kernels, on all its streams.
constexpr size_t kLooks = 4096;

// What follows the times and the correlation: half a word, then whole ones.
constexpr size_t kLookBegin = 20;
static_assert(offsetof(DeviceRow, name) == kLookBegin && offsetof(CallRow, tid) == kLookBegin);

template <class Word>
Word DifferenceAt(const void* a, const void* b, size_t at) {
  Word word_a, word_b;
  memcpy(&word_a, static_cast<const char*>(a) + at, sizeof(Word));
  memcpy(&word_b, static_cast<const char*>(b) + at, sizeof(Word));
  return word_a ^ word_b;
}

template <class RowType>
bool LooksTheSame(const RowType& a, const RowType& b) {
  uint64_t differences = DifferenceAt<uint32_t>(&a, &b, kLookBegin);
  for (size_t at = kLookBegin + 4; at < sizeof(RowType); at += 8) {
    differences |= DifferenceAt<uint64_t>(&a, &b, at);
  }
  return differences == 0;
}

size_t PlaceOf(uint32_t a, uint32_t b, uint32_t c) {
  const uint64_t mixed = a * uint64_t{0x9E3779B97F4A7C15} ^ b * uint64_t{0xC2B2AE3D27D4EB4F} ^
                         c * uint64_t{0x165667B19E3779F9};
  return mixed >> 40 & (kLooks - 1);
}

}  // namespace

DeviceDecoder::RowKey DeviceDecoder::KeyOf(const CallRow& row) {
  return {-1, row.begin_ns, row.end_ns, row.correlation, row.tid, row.cbid, 0};
}

DeviceDecoder::RowKey DeviceDecoder::KeyOf(const DeviceRow& row) {
  return {static_cast<int>(row.type),
          row.begin_ns,
          row.end_ns,
          row.correlation,
          row.device,
          row.stream,
          row.graph_node};
}

// Rows of this version, or of a later one that has appended columns. Leaves the last one in `last`.
template <class RowType, class Visit>
bool DeviceDecoder::ForEachRun(const Chunk& chunk, const RowRuns& runs,
                               std::optional<RowType>& last, Visit visit) {
  if (chunk.row_bytes < sizeof(RowType) || chunk.row_bytes % 8 != 0) return false;
  for (size_t r = 0; r < runs.runs(); ++r) {
    const size_t first = runs.run_begin[r];
    const size_t count = runs.run_begin[r + 1] - first;
    const Run run = {std::span(runs.begin_ns).subspan(first, count),
                     std::span(runs.end_ns).subspan(first, count),
                     std::span(runs.correlation).subspan(first, count)};
    RowType row;
    memcpy(&row, runs.looks.data() + r * chunk.row_bytes / 8, sizeof row);
    visit(row, run);
    run.Fill(count - 1, row);
    last = row;
  }
  return true;
}

bool DeviceDecoder::Add(const Chunk& chunk, const RowRuns& runs, const WriterStrings& names) {
  kernel_looks_.resize(kLooks);
  call_looks_.resize(kLooks);
  if (chunk.kind == ChunkKind::kCallRows) {
    return ForEachRun(chunk, runs, last_call_,
                      [&](const CallRow& row, const Run& run) { AddCalls(row, run, names); });
  }
  return ForEachRun(chunk, runs, last_device_row_, [&](DeviceRow row, const Run& run) {
    if (row.type == DeviceRowType::kKernel) return AddKernels(row, run, names);
    for (size_t i = 0; i < run.size(); ++i) {
      run.Fill(i, row);
      if (!IsRepeated(row)) AddDeviceRow(row, names);
    }
  });
}

// A process killed between a row and the note that it is one: who salvages makes it again.
void DeviceDecoder::EndWriter() {
  const auto remember = [&](auto& last) {
    if (last) {
      earlier_.insert(KeyOf(*last));
      earlier_correlations_.Add(last->correlation);
    }
    last.reset();
  };
  remember(last_device_row_);
  remember(last_call_);
  ++writer_;  // whose looks these are: names are a writer's own
}

// The present writer; none where the name is lost, so that each such row is counted.
uint64_t DeviceDecoder::WriterOf(uint32_t name, const WriterStrings& names) const {
  bool known = true;
  names.Get(name, &known);
  return known ? writer_ : 0;
}

void DeviceDecoder::AddKernels(DeviceRow row, const Run& run, const WriterStrings& names) {
  times_.clear();
  for (size_t i = 0; i < run.size(); ++i) {
    run.Fill(i, row);
    if (IsRepeated(row) || !CountDeviceWork(row)) continue;
    times_.push_back(TimesOf(row));
  }
  if (times_.empty()) return;
  const KernelLook& look = LookOf(row, names, times_.size());
  builder_.AddDeviceOps({.name = look.name, .track = look.track, .args = look.args},
                        DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, times_);
}

const DeviceDecoder::KernelLook& DeviceDecoder::LookOf(const DeviceRow& row,
                                                       const WriterStrings& names, size_t rows) {
  KernelLook& look = kernel_looks_[PlaceOf(row.name, row.stream, row.kernel.grid[0])];
  if (look.writer == writer_ && LooksTheSame(look.row, row)) return look;
  look.row = row;
  look.writer = WriterOf(row.name, names);
  look.name = KernelName(NameOf(row.name, names, rows));
  look.args = KernelArgs(row);
  look.track = Stream(row.device, row.context, row.stream);
  return look;
}

void DeviceDecoder::AddCalls(CallRow row, const Run& run, const WriterStrings& names) {
  const CallLook& look = LookOf(row, names);
  const auto add_times = [&](ArgsId args) {
    builder_.AddApis({.name = look.name, .track = look.track, .args = args}, look.kind, times_);
    times_.clear();
  };
  times_.clear();
  size_t calls = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    run.Fill(i, row);
    if (IsRepeated(row)) continue;
    ++calls;
    NoteCall(row, look.kind);
    const StringId stack = stacks_.Of(row.correlation);
    if (stack != kEmptyString) add_times(look.args);
    times_.push_back(TimesOf(row));
    if (stack != kEmptyString) add_times(CallArgs(row, stack));
  }
  add_times(look.args);
  if (look.writer != writer_) NameOf(row.name, names, calls);
}

void DeviceDecoder::NoteCall(const CallRow& row, ApiKind kind) {
  ++call_rows_;
  last_call_ns_ = std::max(last_call_ns_, row.end_ns);
  const bool launches = kind == ApiKind::kLaunch || kind == ApiKind::kGraphLaunch;
  if (launches && row.result == 0 && row.correlation != 0) {
    launches_.push_back({row.correlation, row.begin_ns});
    if (kind == ApiKind::kGraphLaunch) ++launches_of_graphs_;
  }
  if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) {
    allocating_thread_[row.correlation] = row.tid;
  }
}

const DeviceDecoder::CallLook& DeviceDecoder::LookOf(const CallRow& row,
                                                     const WriterStrings& names) {
  CallLook& look = call_looks_[PlaceOf(row.name, row.tid, row.result)];
  if (look.writer == writer_ && LooksTheSame(look.row, row)) return look;
  look.row = row;
  look.writer = WriterOf(row.name, names);
  look.name = NameOf(row.name, names, 0);
  look.kind = ApiKindOf(builder_.trace().Text(look.name));
  look.track = builder_.FindOrAddThread(process_, int64_t{row.tid});
  look.args = CallArgs(row, kEmptyString);
  return look;
}

}  // namespace trainprof::recording
