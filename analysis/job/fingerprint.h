// What is the same thing in another run: the environment that its times depend on, and findings.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/job.h"

namespace trainprof {

// Something that step times depend on and that is no part of the program.
struct EnvironmentFact {
  std::string_view id;     // snake_case, stable: programs match on it
  std::string_view title;  // "GPU driver"
  std::string value;       // "" where the run does not tell
  // Where it differs between two runs, their times cannot be compared; else, only with care.
  bool refuses = true;

  bool operator==(const EnvironmentFact&) const = default;
};

// The same ids in the same order for every job; of ranks that differ, what each has.
std::vector<EnvironmentFact> EnvironmentOf(const JobAnalysis& job);

// A place in the source as it is called in another checkout, after other edits: the file's name
// without its folders, no line, the function; without a file the operator, range or kernel without
// numbers, parameters and namespaces: "ProfilerStep#", "gemm_#x#".
std::string NormalName(const Site& site);

// 16 hexadecimal digits; the same for the same rule at the same place, in any run. No time, count
// or line is in it.
std::string FingerprintOf(std::string_view rule, const Site& site);

}  // namespace trainprof
