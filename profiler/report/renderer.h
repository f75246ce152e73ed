// A renderer turns a job into text of one format. One file a renderer, render_<slug>.cpp: CMake
// finds it, and `--format <slug>` names it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/job/job.h"
#include "analysis/job/open.h"

namespace trainprof {

struct GateResult;

struct RenderOptions {
  bool color = false;  // terminal escapes are welcome
  // For renderers that show events: reads the job's ranks again and passes each on, one in memory
  // at a time, numbered as in JobAnalysis::ranks and in the order of the job's files. Empty where
  // the job has no path that can be read again.
  std::function<Result<void>(const VisitTrace& visit)> visit_traces = {};
  // What `trainprof check` says of the job; null where nobody asked it. Formats that show it judge the job by the
  // policy of no file then.
  const GateResult* gate = nullptr;
};

struct Renderer {
  std::string_view description;
  // Fails where traces cannot be read.
  Result<std::string> (*render)(const JobAnalysis&, const RenderOptions&);
  bool for_people = false;  // what a terminal would obey is shown as text, in files too
};

struct RegisteredRenderer {
  std::string_view slug;
  const Renderer* renderer;
};

std::span<const RegisteredRenderer> AllRenderers();
const Renderer* FindRenderer(std::string_view slug);

// The job's report in this format.
Result<std::string> RenderJob(const Renderer& renderer, const JobAnalysis& job,
                              const RenderOptions& options);

// What `trainprof run` prints when the program has ended: at most 20 lines.
std::string RenderCard(const JobAnalysis& job, const RenderOptions& options);

}  // namespace trainprof
