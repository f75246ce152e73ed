// One `trainprof run`: prepare the recording, start the program, wait for it, seal, print the card.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "collectors/machine/host_sampler.h"
#include "trace/base/result.h"
#include "trace/recording/wire/layout.h"

namespace trainprof {

// Says in a few lines of text what a sealed recording shows. Called in a forked process with a time
// and a memory limit, so it may crash or hang without harm.
using VerdictRenderer = std::function<Result<std::string>(const std::filesystem::path& run_dir)>;

struct RunSettings {
  std::vector<std::string> program;  // not empty
  std::string output;                // -o, or empty for the default name
  bool force = false;                // replace an earlier recording in `output`
  bool share = false;                // the group may read the recording
  bool keep_command_line = true;     // false: the program's name alone
  std::string collector_options;     // TRAINPROF_OPTIONS, see trace/recording/wire/layout.h
  uint64_t max_bytes = recording::kDefaultMaxBytes;  // UINT64_MAX: no bound
  double sample_hz = kDefaultSampleHz;               // of the host sampler; 0: none
  double stack_hz = kDefaultStackHz;                 // of its stacks of Python threads; 0: none
  bool operators = false;                            // of torch, and calls of its modules, too
  bool memory = false;                               // that torch programs hold, by step and line
  bool strict = false;      // a failure to record is a failure: exit code 125
  bool quiet = false;       // no end card
  VerdictRenderer verdict;  // empty: the card has no verdict
  // Last of all, by the first rank's supervisor, with the recording's folder; may be empty. Ctrl-C ends it. What it
  // returns is the exit code of a run whose program's is 0.
  std::function<int(const std::filesystem::path& run_dir)> afterwards{};
};

// Returns the exit code of `trainprof run`: the program's own (128 + N after signal N), 125 when it
// was not started, 126 or 127 when it could not be. A failure to record is said on stderr and
// changes the code only when `strict`.
int RunSession(const RunSettings& settings);

}  // namespace trainprof
