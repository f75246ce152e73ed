#include "trace/recording/read/stack_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

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

StackTexts::StackTexts(const SegmentReader& segment, const SegmentScan& scan, TraceBuilder& builder)
    : scan_(scan), builder_(builder) {
  if (scan.stack_of_call.empty()) return;
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
    builder_.quality().Count("stack_not_symbolised", QualitySeverity::kInfo,
                             static_cast<int64_t>(module.frames.size()),
                             module.path + ": " + module.state);
  }
}

StringId StackTexts::Of(uint32_t correlation) {
  const auto call = scan_.stack_of_call.find(correlation);
  if (call == scan_.stack_of_call.end()) return kEmptyString;
  const auto [it, is_new] = texts_.try_emplace(call->second, kEmptyString);
  if (!is_new) return it->second;
  const auto stack = scan_.stacks.find(call->second);
  if (stack == scan_.stacks.end()) {
    builder_.quality().Count("lost_stack", QualitySeverity::kWarning, 1,
                             "stacks of calls that were in a lost chunk");
    return kEmptyString;
  }
  bool repaired = false;
  return it->second = builder_.Intern(RepairUtf8(TextOf(stack->second), &repaired));
}

bool StackTexts::IsCuda(uint64_t address) const {
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

std::string StackTexts::TextOf(const std::vector<uint64_t>& frames) const {
  std::string text;
  const auto add = [&](std::string frame) {
    std::replace(frame.begin(), frame.end(), ';', ',');  // what separates frames
    text += (text.empty() ? "" : ";") + frame;
  };
  const auto outermost = std::find_if(frames.rbegin(), frames.rend(),
                                      [&](uint64_t address) { return IsCuda(address); });
  const size_t first =
      outermost == frames.rend() ? 0 : static_cast<size_t>(frames.rend() - outermost) - 1;
  for (const uint64_t address : std::span(frames).subspan(first)) {
    size_t index = 0;
    uint64_t key = 0;
    if (!PlaceOf(scan_, address, &index, &key)) {
      add(fmt::format("{:#x}", address));
      continue;
    }
    const ModuleSymbols& module = symbols_[index];
    const std::string place = fmt::format("{}(+{:#x})", module.path, key);
    const auto found = module.frames.find(key);
    if (found == module.frames.end() || found->second.empty()) {
      add(place);
      continue;
    }
    for (const SourceFrame& frame : found->second) {
      const bool has_line = !frame.file.empty() && !IsForeignModule(module.path);
      const std::string where = has_line ? fmt::format("{}({})", frame.file, frame.line) : place;
      add(frame.function.empty() ? where : where + ": " + frame.function);
    }
  }
  return text;
}

}  // namespace trainprof::recording
