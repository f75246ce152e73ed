// The rows of a segment by the run: what rows have in common that differ in their times and
// correlation alone is looked up once.
#include <algorithm>
#include <cstring>

#include "trace/recording/read/cupti_names.h"
#include "trace/recording/read/device_decoder.h"

namespace trainprof::recording {
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
  looks_.assign(runs.looks.size() * 8 / chunk.row_bytes, Look());
  for (size_t r = 0; r < runs.runs(); ++r) {
    const size_t first = runs.run_begin[r];
    const size_t count = runs.run_begin[r + 1] - first;
    const Run run = {std::span(runs.begin_ns).subspan(first, count),
                     std::span(runs.end_ns).subspan(first, count),
                     std::span(runs.correlation).subspan(first, count)};
    const size_t look = runs.look_of_run[r];
    RowType row;
    memcpy(&row, runs.looks.data() + look * chunk.row_bytes / 8, sizeof row);
    visit(look, row, run);
    if (r + 1 < runs.runs()) continue;
    run.Fill(count - 1, row);
    last = row;
  }
  return true;
}

bool DeviceDecoder::Add(const Chunk& chunk, const RowRuns& runs, const WriterStrings& names) {
  if (chunk.kind == ChunkKind::kCallRows) {
    return ForEachRun(chunk, runs, last_call_, [&](size_t look, CallRow& row, const Run& run) {
      AddCalls(looks_[look], row, run, names);
    });
  }
  return ForEachRun(chunk, runs, last_device_row_,
                    [&](size_t look, DeviceRow& row, const Run& run) {
                      if (row.type == DeviceRowType::kKernel)
                        return AddKernels(looks_[look], row, run, names);
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
}

void DeviceDecoder::AddKernels(Look& look, DeviceRow& row, const Run& run,
                               const WriterStrings& names) {
  times_.clear();
  for (size_t i = 0; i < run.size(); ++i) {
    run.Fill(i, row);
    if (IsRepeated(row) || !CountDeviceWork(row)) continue;
    times_.push_back(TimesOf(row));
  }
  if (times_.empty()) return;
  if (look.common.name == kUnnamed) {
    look.common.name = KernelName(NameOf(row.name, names, &look.name_is_lost));
    look.launch_config = ConfigOfKernel(row);
    look.common.track = Stream(row.device, row.context, row.stream);
  }
  if (look.name_is_lost) CountLostNames(times_.size());
  builder_.AddDeviceOps(look.common, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, times_,
                        {.launch_config = look.launch_config});
}

void DeviceDecoder::AddCalls(Look& look, CallRow& row, const Run& run, const WriterStrings& names) {
  if (row.tid == 0 && row.name == 0 && row.cbid == 0) return CountWiped(run.size());
  CommonFields& common = look.common;
  if (common.name == kUnnamed) {
    common.name = NameOf(row.name, names, &look.name_is_lost);
    look.kind = builder_.Facts(common.name).api;
    look.capture = CaptureEdgeOf(builder_.trace().Text(common.name));
    look.launches_host_function = LaunchesHostFunction(builder_.trace().Text(common.name));
    common.track = builder_.FindOrAddThread(process_, int64_t{row.tid});
    common.args = CallArgs(row);
  }
  times_.clear();
  size_t calls = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    run.Fill(i, row);
    if (IsRepeated(row)) continue;
    ++calls;
    NoteCall(row, look, builder_.trace().api.size() + times_.size());
    const StackId stack = stacks_.Of(row.correlation);
    if (stack == kNoStack) {
      times_.push_back(TimesOf(row));
      continue;
    }
    builder_.AddApis(common, look.kind, times_);
    times_.assign(1, TimesOf(row));
    CommonFields with_stack = common;
    with_stack.stack = stack;
    builder_.AddApis(with_stack, look.kind, times_);
    times_.clear();
  }
  builder_.AddApis(common, look.kind, times_);
  if (row.result != 0 && row.result != kNotReady) NoteFailure(common.name, row.result, calls);
  if (look.name_is_lost) CountLostNames(calls);
}

void DeviceDecoder::NoteFailure(StringId call, uint32_t result, size_t calls) {
  // A program that goes on failing in ever new ways does not fill our memory.
  constexpr size_t kMost = 1000;
  const std::pair key(call, result);
  if (failures_.size() < kMost || failures_.contains(key)) failures_[key] += calls;
}

void DeviceDecoder::NoteCall(const CallRow& row, const Look& look, size_t place) {
  const ApiKind kind = look.kind;
  ++call_rows_;
  last_call_ns_ = std::max(last_call_ns_, row.end_ns);
  if (StartsKernels(kind) && row.correlation != 0) {
    if (row.result == 0) {
      launched_.Add(row.correlation);
    } else {
      failed_launches_.push_back(static_cast<uint32_t>(place));
    }
  }
  if (look.launches_host_function && row.result == 0 && row.correlation != 0) {
    host_launches_.push_back({At(row.begin_ns), row.correlation, look.common.track, false});
  }
  if (look.capture == CaptureEdge::kBegin && row.result == 0) ++capture_edges_[row.correlation];
  if (look.capture == CaptureEdge::kEnd) --capture_edges_[row.correlation];
  if (kind == ApiKind::kSync) ++sync_calls_;
  if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) {
    allocating_thread_[row.correlation] = row.tid;
  }
}

}  // namespace trainprof::recording
