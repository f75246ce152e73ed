// Samples of stacks as writers of other tools' formats need them: thread by thread, frames in words.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/base/cancel.h"
#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

struct StackSample {
  TraceTime at;
  StackId stack = kNoStack;
  int64_t weight_ns = 0;  // of the time before `at`
};

// Calls visit(TrackId, std::vector<StackSample>) for each thread that has some, in time order.
// Can be cancelled.
template <class Visit>
void ForEachSampledThread(const Trace& trace, Visit visit) {
  const SampleTable& table = trace.samples;
  for (uint32_t track = 0; track < trace.tracks.size(); ++track) {
    const auto [begin, end] = table.rows_of(TrackId{track});
    std::vector<StackSample> found;
    for (uint32_t row = begin; row < end; ++row) {
      CancelPoint(row);
      found.push_back({table.begin[row], table.stack[row], table.WeightNs(row)});
    }
    if (!found.empty()) visit(TrackId{track}, found);
  }
}

// An error where the trace has none: the message says what gives some.
inline Result<void> CheckHasSamples(const Trace& trace) {
  if (trace.samples.size() > 0) return {};
  return Error{trace.path +
               ": holds no samples of stacks. trainprof run takes them of Python programs"};
}

// "python 4711, thread 4712 (loader)".
inline std::string ThreadText(const Trace& trace, TrackId track) {
  const Track& thread = trace.tracks[Index(track)];
  const Process& process = trace.processes[Index(thread.process)];
  std::string text(trace.Text(process.name));
  text += (text.empty() ? "" : " ") + std::to_string(process.pid);
  if (thread.tid == process.pid) return text;
  text += ", thread " + std::to_string(thread.tid);
  if (thread.name != kEmptyString) text += " (" + std::string(trace.Text(thread.name)) + ")";
  return text;
}

// Outermost first, as flame graphs are read.
inline std::vector<FrameId> OutermostFirst(const StackTable& stacks, StackId stack) {
  std::vector<FrameId> frames;
  for (; stack != kNoStack; stack = stacks.caller(stack)) frames.push_back(stacks.innermost(stack));
  return {frames.rbegin(), frames.rend()};
}

}  // namespace trainprof
