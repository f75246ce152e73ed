// The stacks of a segment's calls as text, in the form of Kineto's "Call stack":
//
//   /opt/libtorch/lib/libtorch_cpu.so(+0x1a2b): at::Tensor::item() const;train.cpp(88): main
//
// innermost first, from the CUDA call on: what stands inside of it is the driver's, CUPTI's and
// ours. Frames of libraries that are not the user's name the library, others their line. Symbols
// come from the file that SymbolizeRecording has written beside the segment; what that lacks is
// looked up on the spot, in a recording of this machine since its last boot: files that another
// machine's recording names are not opened.
#pragma once

#include <map>
#include <string>

#include "trace/build/trace_builder.h"
#include "trace/recording/segments/segment_scan.h"
#include "trace/symbols/symbolizer.h"

namespace trainprof::recording {

class StackTexts {
 public:
  // Keeps references. Without stacks in the segment no file is read.
  StackTexts(const SegmentReader& segment, const SegmentScan& scan, TraceBuilder& builder);

  // Of the call with that correlation; kEmptyString where none was taken.
  StringId Of(uint32_t correlation);

 private:
  std::string TextOf(const std::vector<uint64_t>& frames) const;
  bool IsCuda(uint64_t address) const;

  const SegmentScan& scan_;
  TraceBuilder& builder_;
  std::vector<ModuleSymbols> symbols_;  // of scan_.modules
  std::map<StackKey, StringId> texts_;
};

}  // namespace trainprof::recording
