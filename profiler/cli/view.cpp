// trainprof view: starts the viewer, a program of its own (viewer/main.cpp), which alone knows its
// flags.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "profiler/cli/commands.h"
#include "profiler/cli/outputs.h"

namespace trainprof::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kViewer[] = "trainprof-viewer";

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
  return Fail("view",
              fmt::format("{} is neither beside trainprof nor in PATH. To build it: "
                          "scripts/install_packages.sh viewer, then cmake --build again. The text "
                          "report needs no viewer: trainprof report",
                          kViewer),
              kExitUsage);
}

Action SetUp(CLI::App& parser) {
  // All that is written belongs to the viewer, --help too.
  parser.set_help_flag();
  parser.prefix_command();
  return [&parser](const ProgramArguments&) { return View(parser.remaining()); };
}

}  // namespace

Command ViewCommand() { return {"view", "show a recording or a trace as a timeline", "", SetUp}; }

}  // namespace trainprof::cli
