// trainprof view: starts the viewer, a program of its own (viewer/main.cpp), which alone knows its
// flags.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kViewer[] = "trainprof-viewer";
constexpr char kHowToBuild[] = "scripts/install_packages.sh viewer, then cmake --build again";

// Where there is a viewer, it prints its own, with all its flags.
constexpr char kHelp[] = R"(show a recording or a trace as a timeline

Usage: trainprof view [OPTIONS] [PATH]

The timeline is a program of its own, {0}, which is neither beside trainprof nor in PATH. It has the
list of the options. To build it: {1}.
The text report needs no viewer: trainprof report PATH

Examples:
  trainprof view trainprof-20261120T101500Z
  trainprof view worker0.pt.trace.json.gz
  trainprof view run/ --screenshot picture.png
)";

// Returns only when it could not be started.
void Exec(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  argv.push_back(const_cast<char*>(kViewer));
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  execvp(program.c_str(), argv.data());
}

int View(const std::vector<std::string>& arguments) {
  std::error_code error;
  const fs::path beside = fs::read_symlink("/proc/self/exe", error).parent_path() / kViewer;
  if (fs::exists(beside, error)) {
    Exec(beside.string(), arguments);
  } else {
    Exec(kViewer, arguments);  // from PATH
  }
  if (errno != ENOENT) {
    return Fail("view", fmt::format("{} cannot be started: {}", kViewer, std::strerror(errno)),
                kExitInternal);
  }
  const bool asks_help =
      std::any_of(arguments.begin(), arguments.end(),
                  [](const std::string& word) { return word == "--help" || word == "-h"; });
  if (asks_help) {
    Print(stdout, kHelp, kViewer, kHowToBuild);
    return kExitOk;
  }
  return Fail("view",
              fmt::format("{} is neither beside trainprof nor in PATH. To build it: {}. The text "
                          "report needs no viewer: trainprof report",
                          kViewer, kHowToBuild),
              kExitUsage);
}

Action SetUpView(CLI::App& parser) {
  // All that is written belongs to the viewer, --help too.
  parser.set_help_flag();
  parser.prefix_command();
  return [&parser](const ProgramArguments&) { return View(parser.remaining()); };
}

}  // namespace

Command ViewCommand() {
  return {"view", "show a recording or a trace as a timeline", "", SetUpView};
}

}  // namespace trainprof::cli
