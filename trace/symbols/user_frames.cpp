#include "trace/symbols/user_frames.h"

#include <algorithm>

#include "trace/base/names.h"
#include "trace/symbols/hook_frames.h"
#include "trace/symbols/native_frames.h"

namespace trainprof {
namespace {

constexpr std::string_view kGenerated[] = {"/torchinductor_", "/.triton/"};

// A frame of a file that is a profiler's: "profiler.py(684): step", "my_profiler.py(12): __exit__".
bool IsProfilerFrame(std::string_view file, std::string_view function) {
  constexpr std::string_view kFunctions[] = {"step", "start", "stop", "__exit__", "__enter__"};
  const std::string_view base = file.substr(file.rfind('/') + 1);
  return IsProfilerStep(function) || (names_internal::ContainsNoCase(base, "profiler.") &&
                                      names_internal::IsOneOf(function, kFunctions));
}

// What torch.compile writes, whose place the environment decides ("/tmp/torchinductor_me/ct/ct5jjx...py"): named by the
// 51 or 52 characters of a hash in base 32 (torch._inductor.codecache.code_hash); and Triton's cache.
bool IsGenerated(std::string_view file) {
  if (native_internal::ContainsAny(file, kGenerated)) return true;
  if (!file.ends_with(".py")) return false;
  const std::string_view name = file.substr(file.rfind('/') + 1);
  const std::string_view stem = name.substr(0, name.size() - 3);
  return (stem.size() == 51 || stem.size() == 52) && stem.front() == 'c' &&
         std::ranges::all_of(
             stem, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'); });
}

}  // namespace

bool IsUserFrame(const FrameText& frame) {
  const bool has_line = !frame.file.empty();
  if (!has_line && !frame.module.empty()) {
    return !frame.function.empty() && !IsForeignModule(frame.module) && frame.function != "_start";
  }
  // Of a frame without a place the text itself may begin with one.
  const std::string_view file =
      has_line ? frame.file : frame.function.substr(0, frame.function.find('('));
  if (file.empty() || file.starts_with("0x")) return false;  // an address
  if (file.starts_with("torch/") || file.starts_with("nn.Module")) return false;
  if (has_line && (IsHookFrame(file) || IsProfilerFrame(file, frame.function))) return false;
  if (IsGenerated(file) || (!file.ends_with(".py") && IsForeignSource(file))) return false;
  constexpr std::string_view kForeign[] = {"site-packages/", "dist-packages/", "/torch/",
                                           "lib/python",     "<built-in",      "<frozen",
                                           "<string>"};
  return !native_internal::ContainsAny(frame.file, kForeign) &&
         !native_internal::ContainsAny(frame.function, kForeign);
}

}  // namespace trainprof
