// The card that `trainprof run` prints on stderr when the program has ended.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "profiler/session/finalise.h"
#include "profiler/session/supervise.h"

namespace trainprof {

inline constexpr size_t kMaxCardLines = 20;

struct CardContents {
  std::vector<std::string> program;
  ProgramEnd end;
  std::chrono::nanoseconds wall_time;
  std::filesystem::path directory;
  RecordingFacts facts;
  bool sampled = true;  // CPU, memory and disk
  std::string verdict;  // as the analysis renders it; cut to what fits
  std::string no_verdict_reason;
  std::vector<std::string> notes;  // what was lost or left out, one line each
};

// At most kMaxCardLines lines, each ending in a newline. `colour`: with ANSI emphasis.
std::string RenderEndCard(const CardContents& card, bool colour);

}  // namespace trainprof
