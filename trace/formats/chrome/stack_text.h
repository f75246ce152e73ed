// Stacks as Kineto spells them, innermost first:
//
//   /opt/lib/libtorch_cpu.so(+0x1a2b): at::Tensor::item() const;train.cpp(88): step;0x7f3012
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/build/trace_builder.h"

namespace trainprof {

// The key of the argument that holds one.
inline constexpr std::string_view kCallStackKey = "Call stack";
// And of the one that says where a range is opened (Opening, trace/tables/trace.h): on the first of its name.
inline constexpr std::string_view kOpenedAtKey = "Opened at";

// What is no file's line and no module's place is the function. Views into `text`.
FrameText ParseFrame(std::string_view text);
std::string FrameSpelled(const Trace& trace, const CallFrame& frame);
// A ';' within a frame becomes ','.
std::string StackSpelled(const Trace& trace, StackId stack);

// Puts such texts into the trace's table of stacks, each distinct one once.
class StackTexts {
 public:
  explicit StackTexts(TraceBuilder& builder) : builder_(builder) {}  // keeps the reference

  // kNoStack where the text has no frame. O(1) for a text that was there before.
  StackId Of(StringId text) { return text == kEmptyString ? kNoStack : OfText(text); }
  // A stack of the one frame that a name spells.
  StackId OfFrame(StringId name);

  size_t size_bytes() const {
    return (stack_of_text_.capacity() + stack_of_name_.capacity()) * sizeof(StackId);
  }

 private:
  StackId OfText(StringId text);
  StackId& Known(std::vector<StackId>& known, StringId text);

  TraceBuilder& builder_;
  std::vector<StackId> stack_of_text_;  // by StringId
  std::vector<StackId> stack_of_name_;
};

}  // namespace trainprof
