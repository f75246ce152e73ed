// A renderer turns a job into text of one format. One file a renderer, render_<slug>.cpp: CMake
// finds it, and `--format <slug>` names it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/job/job.h"

namespace trainprof {

struct RenderOptions {
  bool color = false;  // terminal escapes are welcome
};

struct Renderer {
  std::string_view description;
  std::string (*render)(const JobAnalysis&, const RenderOptions&);
  bool for_people = false;  // what a terminal would obey is shown as text, in files too
};

struct RegisteredRenderer {
  std::string_view slug;
  const Renderer* renderer;
};

std::span<const RegisteredRenderer> AllRenderers();
const Renderer* FindRenderer(std::string_view slug);

// The job's report in this format.
std::string RenderJob(const Renderer& renderer, const JobAnalysis& job,
                      const RenderOptions& options);

// What `trainprof run` prints when the program has ended: at most 20 lines.
std::string RenderCard(const JobAnalysis& job, const RenderOptions& options);

}  // namespace trainprof
