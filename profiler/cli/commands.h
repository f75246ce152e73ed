// The explicit list of commands.
#pragma once

#include <span>
#include <string_view>

#include "profiler/cli/command.h"

namespace trainprof::cli {

Command RunCommand();
Command AnalyzeCommand();
Command ReportCommand();
Command ViewCommand();
Command CheckCommand();
Command DiffCommand();
Command BaselineCommand();
Command InitCommand();
Command ExplainCommand();
Command ExportCommand();
Command DoctorCommand();

// In the order in which `trainprof --help` shows them.
std::span<const Command> Commands();

const Command* FindCommand(std::string_view name);  // nullptr where there is none of that name

}  // namespace trainprof::cli
