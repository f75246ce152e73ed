// The gate, as `check` and `run --check` ask for it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "profiler/gate/policy.h"

namespace trainprof::cli {

struct CheckFlags {
  std::vector<std::string> paths;
  std::vector<std::string> formats;
  std::string config;
  std::string baseline;
  PolicyChanges changes;  // of what the policy says
  bool allow_inconclusive = false;
  bool exit_zero = false;
  bool beside_a_program =
      false;  // standard output is a program's: the gate's lines go to standard error
};

// --config, --baseline, --budget, --fail-on, --allow-inconclusive.
void AddGateFlags(CLI::App& parser, CheckFlags& flags);

// Loads, judges, writes the reports, prints. The exit code; `command` stands before errors.
int RunCheck(CheckFlags flags, const char* command);

}  // namespace trainprof::cli
