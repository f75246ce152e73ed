// The stacks of a segment's calls and of the places where ranges are opened, in the trace's table of stacks: innermost first, from the CUDA
// call on: what stands inside of it is the driver's, CUPTI's and ours. Where an interpreter made the
// call, its functions stand in place of the frames that ran them. Frames of libraries that are
// not the user's name the library, others their line. Symbols come from the file that
// SymbolizeRecording has written beside the segment; what that lacks is looked up on the spot, in a
// recording of this machine since its last boot: files that another machine's recording names are
// not opened.
#pragma once

#include <map>
#include <unordered_map>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/symbols/symbolizer.h"

namespace trainprof::recording {

class CallStacks {
 public:
  // Keeps references. Without stacks in the segment no file is read.
  CallStacks(const SegmentReader& segment, const SegmentScan& scan, TraceBuilder& builder);

  // Of the call with that correlation; kNoStack where none was taken.
  StackId Of(uint32_t correlation);
  // Where the process opens ranges, as far as it was seen.
  void AddOpenings(ProcessId process);

 private:
  // `script`: what called the interpreter's innermost native frames.
  StackId StackOf(const std::vector<uint64_t>& addresses, StackId script);
  StackId ScriptOf(StackKey script);
  StackId Of(const ScannedCall& call);
  std::vector<FrameId> FramesOf(uint64_t address);
  bool IsCuda(uint64_t address) const;
  bool IsInterpreter(uint64_t address) const;

  const SegmentScan& scan_;
  TraceBuilder& builder_;
  std::vector<ModuleSymbols> symbols_;                         // of scan_.modules
  std::unordered_map<uint64_t, std::vector<FrameId>> frames_;  // by return address, innermost first
  std::map<std::pair<StackKey, StackKey>, StackId> stacks_;
  std::map<StackKey, StackId> scripts_;
};

}  // namespace trainprof::recording
