// A baseline: what the gate compares runs with, as a file for the repository.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/job/job.h"
#include "trace/base/result.h"

namespace trainprof {

// The runs as JSON: of each what a comparison needs (analysis/job/diff.h), without folders of the machine that
// recorded them. The same bytes for the same runs.
std::string BaselineText(const std::vector<JobDigests>& runs);

// The runs of such a text, which came from `path`. Errors name what is wrong, and the version where it is another
// trainprof's.
Result<std::vector<JobAnalysis>> BaselineFrom(std::string_view text, const std::string& path);
Result<std::vector<JobAnalysis>> ReadBaseline(const std::filesystem::path& path);

// Some hundred runs of many ranks.
inline constexpr size_t kMostBaselineBytes = size_t{256} << 20;

}  // namespace trainprof
