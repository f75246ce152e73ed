// The explicit list of commands: adding one is a line here and a declaration in commands.h.
#include "profiler/cli/commands.h"

namespace trainprof::cli {

std::span<const Command> Commands() {
  static const Command commands[] = {
      RunCommand(),     AnalyzeCommand(), ReportCommand(),   ViewCommand(),
      CheckCommand(),   DiffCommand(),    BaselineCommand(), InitCommand(),
      ExplainCommand(), ExportCommand(),  DoctorCommand(),
  };
  return commands;
}

const Command* FindCommand(std::string_view name) {
  for (const Command& command : Commands()) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

}  // namespace trainprof::cli
