// What a command of trainprof is: data. One file a command under profiler/cli; commands.cpp lists
// them. To add one: write `Command FooCommand()` in foo.cpp, declare it in commands.h, list it in
// commands.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "trace/base/exit_codes.h"

namespace trainprof::cli {

// A program to start and its arguments, exactly as the user typed them; empty for most commands.
using ProgramArguments = std::vector<std::string>;

// Runs a parsed command and returns the exit code.
using Action = std::function<int(const ProgramArguments&)>;

struct Command {
  const char* name;
  const char* summary;   // one line, shown in `trainprof --help`
  const char* examples;  // shown below the flags in `trainprof help NAME`
  // Adds the flags and positional arguments to the parser, and returns what runs once they are
  // parsed. The variables that flags write to must outlive this call: the action owns them.
  Action (*set_up)(CLI::App& parser);
  int usage_error_code = kExitUsage;
  // True: all that follows the flags (or "--") is a program to start, never parsed by us.
  bool takes_program = false;
};

}  // namespace trainprof::cli
