// A run whose supervisor was killed together with its programs.
#pragma once

#include <filesystem>

namespace trainprof {

// Makes rows of what dead processes had from CUPTI, as the supervisor would have done, so that the
// readers find them. `path` as given to a command: a run directory or a rank folder; anything else
// is left alone, and so is a run that another process works on, or that cannot be written to.
void RecoverDead(const std::filesystem::path& path);

}  // namespace trainprof
