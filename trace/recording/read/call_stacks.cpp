#include "trace/recording/read/call_stacks.h"

#include <algorithm>
#include <string>

#include "trace/base/utf8.h"
#include "trace/recording/read/text_stack.h"
#include "trace/recording/seal/symbols_file.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/symbols/native_frames.h"

namespace trainprof::recording {
namespace {

// A report waits this long for symbols that the supervisor had no time for.
constexpr std::chrono::seconds kOnTheSpot{5};

bool HasUnknownFrames(const ModuleSymbols& module) {
  return std::any_of(module.frames.begin(), module.frames.end(),
                     [](const auto& frame) { return frame.second.empty(); });
}

}  // namespace

CallStacks::CallStacks(const SegmentReader& segment, const SegmentScan& scan, TraceBuilder& builder)
    : scan_(scan), builder_(builder) {
  if (scan.stack_of_call.empty() && scan.stack_of_name.empty()) return;
  symbols_ = AddressesOf(scan);
  if (const std::string error = ReadSymbols(segment.path(), symbols_); !error.empty()) {
    builder_.quality().Count("unreadable_file", QualitySeverity::kWarning, 1, error);
  }
  const bool is_of_here = IsOfThisBoot(segment.info());
  const auto deadline = std::chrono::steady_clock::now() + kOnTheSpot;
  for (ModuleSymbols& module : symbols_) {
    if (is_of_here) {
      Symbolize(module, deadline);
    } else if (module.state.empty() && HasUnknownFrames(module)) {
      module.state = "recorded on another machine, or before its last boot: its file is not opened";
    }
    if (module.state.empty() || module.frames.empty() || IsForeignModule(module.path)) continue;
    // A range has its name, too.
    if (scan.stack_of_call.empty()) continue;
    builder_.quality().Count("stack_not_symbolised", QualitySeverity::kInfo,
                             static_cast<int64_t>(module.frames.size()),
                             module.path + ": " + module.state);
  }
}

StackId CallStacks::Of(uint32_t correlation) {
  const auto call = scan_.stack_of_call.find(correlation);
  return call == scan_.stack_of_call.end() ? kNoStack : Of(call->second);
}

void CallStacks::AddOpenings(ProcessId process) {
  for (const auto& [name, call] : scan_.stack_of_name) {
    const auto stack = scan_.stacks.find(call.stack);
    const bool is_interpreters =
        call.script.second == 0 && stack != scan_.stacks.end() &&
        std::any_of(stack->second.begin(), stack->second.end(),
                    [&](uint64_t address) { return IsInterpreter(address); });
    // An extension of Python's, and not the line that called it.
    if (is_interpreters) continue;
    builder_.AddOpening({builder_.Intern(name), process, Of(call)});
  }
}

StackId CallStacks::Of(const ScannedCall& call) {
  const auto& [key, script] = call;
  if (key.second == 0) return ScriptOf(script);
  const auto [it, is_new] = stacks_.try_emplace({key, script}, kNoStack);
  if (!is_new) return it->second;
  const auto stack = scan_.stacks.find(key);
  if (stack == scan_.stacks.end()) {
    builder_.quality().Count("lost_stack", QualitySeverity::kWarning, 1,
                             "stacks of calls that were in a lost chunk");
    return kNoStack;
  }
  return it->second = StackOf(stack->second, ScriptOf(script));
}

StackId CallStacks::ScriptOf(StackKey script) {
  if (script.second == 0) return kNoStack;
  const auto [it, is_new] = scripts_.try_emplace(script, kNoStack);
  if (is_new) it->second = AddTextStack(builder_, scan_.scripts.at(script));
  return it->second;
}

bool CallStacks::IsCuda(uint64_t address) const {
  size_t index = 0;
  uint64_t key = 0;
  if (!PlaceOf(scan_, address, &index, &key)) return false;
  const ModuleSymbols& module = symbols_[index];
  if (IsCudaModule(module.path)) return true;
  const auto found = module.frames.find(key);
  if (found == module.frames.end() || found->second.empty()) return false;
  const SourceFrame& frame = found->second.back();
  return frame.file.empty() && IsCudaFunction(frame.function);
}

bool CallStacks::IsInterpreter(uint64_t address) const {
  size_t index = 0;
  uint64_t key = 0;
  return PlaceOf(scan_, address, &index, &key) && IsPythonModule(symbols_[index].path);
}

StackId CallStacks::StackOf(const std::vector<uint64_t>& addresses, StackId script) {
  const auto outermost = std::find_if(addresses.rbegin(), addresses.rend(),
                                      [&](uint64_t address) { return IsCuda(address); });
  const auto inside = outermost == addresses.rend() ? outermost : outermost + 1;
  auto address = addresses.rbegin();
  if (script != kNoStack) {
    const auto innermost = std::find_if(inside.base(), addresses.end(),
                                        [&](uint64_t it) { return IsInterpreter(it); });
    address = std::make_reverse_iterator(innermost);
  }
  StackId stack = script;
  for (; address != inside; ++address) {
    const auto [it, is_new] = frames_.try_emplace(*address);
    if (is_new) it->second = FramesOf(*address);
    for (auto frame = it->second.rbegin(); frame != it->second.rend(); ++frame) {
      stack = builder_.AddStack(*frame, stack);
    }
  }
  return stack;
}

// One, or more where calls were inlined.
std::vector<FrameId> CallStacks::FramesOf(uint64_t address) {
  size_t index = 0;
  FrameText text;
  if (!PlaceOf(scan_, address, &index, &text.offset)) {
    text.offset = address;
    return {builder_.AddFrame(text)};
  }
  bool repaired = false;
  const ModuleSymbols& module = symbols_[index];
  const std::string path = RepairUtf8(module.path, &repaired);
  text.module = path;
  const auto found = module.frames.find(text.offset);
  if (found == module.frames.end() || found->second.empty()) return {builder_.AddFrame(text)};
  std::vector<FrameId> frames;
  for (const SourceFrame& frame : found->second) {
    const bool has_line = !frame.file.empty() && !IsForeignModule(module.path);
    const std::string function = RepairUtf8(frame.function, &repaired);
    const std::string file = has_line ? RepairUtf8(frame.file, &repaired) : std::string();
    frames.push_back(builder_.AddFrame({.function = function,
                                        .file = file,
                                        .line = has_line ? frame.line : 0,
                                        .module = path,
                                        .offset = has_line ? 0 : text.offset}));
  }
  return frames;
}

}  // namespace trainprof::recording
