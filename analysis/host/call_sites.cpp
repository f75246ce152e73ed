#include "analysis/host/call_sites.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <tuple>

#include "trace/symbols/demangle.h"
#include "trace/symbols/native_frames.h"

namespace trainprof {
namespace {

// "./src/../train.py" and "src//../train.py" are "train.py".
std::string NormalPath(std::string_view file) {
  const auto has = [&](std::string_view part) { return file.find(part) != std::string_view::npos; };
  const bool odd = has("//") || has("/./") || has("/../") || file.starts_with("./");
  if (!odd || has("://")) return std::string(file);
  return std::filesystem::path(file).lexically_normal().string();
}

// A frame of a file that is a profiler's: "profiler.py(684): step", "my_profiler.py(12): __exit__".
bool IsProfilerFrame(std::string_view file, std::string_view function) {
  constexpr std::string_view kFunctions[] = {"step", "start", "stop", "__exit__", "__enter__"};
  const std::string_view base = file.substr(file.rfind('/') + 1);
  return IsProfilerStep(function) || (names_internal::ContainsNoCase(base, "profiler.") &&
                                      names_internal::IsOneOf(function, kFunctions));
}

}  // namespace

Row InnermostRange(const RangeTable& ranges, TrackId thread, TraceTime at) {
  const auto [first, last] = ranges.rows_of(thread);
  const auto begin = ranges.begin.begin();
  const auto after = std::upper_bound(begin + first, begin + last, at);
  if (after == begin + first) return kNoRow;
  Row row{static_cast<uint32_t>(after - begin) - 1};
  while (row != kNoRow && ranges.end[Index(row)] <= at) row = ranges.parent[Index(row)];
  return row;
}

bool ParseFrame(std::string_view frame, Site& site) {
  const size_t close = frame.find("): ");
  if (close == std::string_view::npos) return false;
  const size_t open = frame.rfind('(', close);
  if (open == std::string_view::npos || open == 0) return false;
  int64_t line = 0;
  const char* const number_end = frame.data() + close;
  const auto [end, error] = std::from_chars(frame.data() + open + 1, number_end, line);
  if (error != std::errc{} || end != number_end) return false;
  site.file = NormalPath(frame.substr(0, open));
  site.line = line;
  site.function = frame.substr(close + 3);
  return true;
}

bool ParseModuleFrame(std::string_view frame, std::string_view* module,
                      std::string_view* function) {
  constexpr std::string_view kOffset = "(+0x";
  const size_t open = frame.find(kOffset);
  if (open == std::string_view::npos || open == 0) return false;
  const size_t close = frame.find(')', open);
  if (close == std::string_view::npos) return false;
  *module = frame.substr(0, open);
  const std::string_view rest = frame.substr(close + 1);
  *function = rest.starts_with(": ") ? rest.substr(2) : std::string_view();
  return true;
}

bool IsUserFrame(std::string_view frame) {
  std::string_view module;
  std::string_view function;
  if (ParseModuleFrame(frame, &module, &function)) {
    return !function.empty() && !IsForeignModule(module) && function != "_start";
  }

  constexpr std::string_view kForeign[] = {"site-packages/", "dist-packages/", "/torch/",
                                           "lib/python",     "<built-in",      "<frozen",
                                           "<string>"};
  if (frame.starts_with("torch/") || frame.starts_with("nn.Module")) return false;
  const std::string_view file = frame.substr(0, frame.find('('));
  const size_t named = frame.find("): ");
  if (named != std::string_view::npos && IsProfilerFrame(file, frame.substr(named + 3)))
    return false;
  if (!file.ends_with(".py") && IsForeignSource(file)) return false;
  return std::none_of(std::begin(kForeign), std::end(kForeign), [&](std::string_view part) {
    return frame.find(part) != std::string_view::npos;
  });
}

SiteFinder::SiteFinder(const Trace& trace)
    : trace_(trace), call_stack_key_(trace.strings.Find(kCallStackKey)) {}

bool SiteFinder::UserFrameOf(Row range, Site& site) const {
  const size_t i = Index(range);
  if (trace_.ranges.kind[i] == RangeKind::kPythonFunction) {
    const std::string_view name = trace_.Text(trace_.ranges.name[i]);
    return IsUserFrame(name) && ParseFrame(name, site);
  }
  bool found = false;
  ForEachFrame(StackIn(trace_.ranges.args[i]), [&](std::string_view frame) {
    found = IsUserFrame(frame) && ParseFrame(frame, site);
    return !found;
  });
  return found;
}

std::string_view SiteFinder::StackIn(ArgsId args) const {
  if (call_stack_key_ == kEmptyString) return {};
  const auto stack = trace_.args.Find(args, call_stack_key_);
  if (!stack || stack->type != ArgValue::Type::kString) return {};
  return trace_.Text(stack->text);
}

Site SiteFinder::FindCall(Row call) const {
  Site site;
  bool found = false;
  std::string op;
  ForEachFrame(StackIn(trace_.api.args[Index(call)]), [&](std::string_view frame) {
    Site here;
    std::string_view module;
    std::string_view function;
    const bool has_line = ParseFrame(frame, here);
    if (has_line) function = here.function;
    if (!has_line && !ParseModuleFrame(frame, &module, &function)) return true;
    if (IsUserFrame(frame)) {
      site = here;
      site.function = ShortFunctionName(function);
      found = true;
    } else if (!function.empty()) {
      op = ShortFunctionName(function);  // the last one stands directly in the user's line
    }
    return !found;
  });
  // Of a program without stacks, or a Python one: its own frames are ranges.
  if (!found) return Find(trace_.api.track[Index(call)], trace_.api.begin[Index(call)]);
  site.op = op;
  site.count = 1;
  return site;
}

Site SiteFinder::Find(TrackId thread, TraceTime at) const {
  Site site;
  site.count = 1;
  std::string annotation;
  for (Row row = InnermostRange(trace_.ranges, thread, at); row != kNoRow;
       row = trace_.ranges.parent[Index(row)]) {
    const size_t i = Index(row);
    const std::string_view name = trace_.Text(trace_.ranges.name[i]);
    const NameFacts facts = trace_.Facts(trace_.ranges.name[i]);
    if (trace_.ranges.kind[i] == RangeKind::kCpuOp) site.op = name;
    if (trace_.ranges.kind[i] == RangeKind::kUserAnnotation && annotation.empty() &&
        !facts.is_step && !facts.is_profiler_step) {
      annotation = name;
    }
    if (UserFrameOf(row, site)) return site;
  }
  site.function = annotation.empty() ? site.op : annotation;
  return site;
}

void AddSite(std::vector<Site>& sites, const Site& site) {
  const auto same =
      std::find_if(sites.begin(), sites.end(), [&](const Site& s) { return s.SamePlace(site); });
  if (same == sites.end()) {
    sites.push_back(site);
  } else {
    same->count += site.count;
  }
}

void SortSites(std::vector<Site>& sites) {
  std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) {
    // A line says more than a name: stacks are taken of some calls of a site only.
    if (a.file.empty() != b.file.empty()) return b.file.empty();
    return std::tie(b.count, a.file, a.line, a.function, a.op) <
           std::tie(a.count, b.file, b.line, b.function, b.op);
  });
}

}  // namespace trainprof
