// How the collector gets into the profiled processes: by environment variables alone.
#include "profiler/process/inject.h"

#include <unistd.h>

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "trace/recording/wire/layout.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

bool IsOurs(const char* library) { return fs::path(library).filename() == kCollectorLibrary; }

const char* ToolOf(std::string_view library) {
  const auto contains = [&](std::string_view part) {
    return library.find(part) != std::string_view::npos;
  };
  if (contains("nsight-compute") || contains("ncu")) return "Nsight Compute";
  if (contains("ToolsInjection") || contains("nsight") || contains("nsys")) return "Nsight Systems";
  return "another tool";
}

}  // namespace

Result<fs::path> FindCollector() {
  std::error_code error;
  if (const char* folder = std::getenv(kLibraryFolderVariable); folder != nullptr && *folder) {
    const fs::path path = fs::absolute(fs::path(folder) / kCollectorLibrary);
    if (fs::exists(path, error)) return path;
    return Error{fmt::format("{} is not in {}={}: correct or unset the variable", kCollectorLibrary,
                             kLibraryFolderVariable, folder)};
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path path =
      (program.parent_path() / ".." / "lib" / kCollectorLibrary).lexically_normal();
  if (!program.empty() && fs::exists(path, error)) return path;
  return Error{fmt::format("{} is missing: reinstall trainprof, or name its folder in {}",
                           path.string(), kLibraryFolderVariable)};
}

fs::path PythonFolderOf(const fs::path& collector) {
  std::error_code error;
  const fs::path folder = collector.parent_path() / kPythonFolder;
  return fs::exists(folder / "sitecustomize.py", error) ? folder : fs::path();
}

std::optional<std::string> InjectionHolder(const char* variable) {
  const char* library = std::getenv(variable);
  if (library == nullptr || *library == '\0' || IsOurs(library)) return std::nullopt;
  return fmt::format("{} ({}={})", ToolOf(library), variable, library);
}

bool InsideAnotherRun() {
  const char* library = std::getenv(kNvtxInjectionVariable);
  const char* directory = std::getenv(recording::kEnvRunDirectory);
  std::error_code error;
  return library != nullptr && IsOurs(library) && directory != nullptr &&
         fs::exists(fs::path(directory) / recording::kControlFile, error);
}

std::vector<std::string> EnvironmentWith(
    const std::vector<std::pair<std::string, std::string>>& variables) {
  std::vector<std::string> environment;
  std::vector<bool> replaced(variables.size(), false);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    environment.emplace_back(text);
    for (size_t i = 0; i < variables.size(); ++i) {
      if (name != variables[i].first) continue;
      environment.back() = variables[i].first + "=" + variables[i].second;
      replaced[i] = true;
    }
  }
  for (size_t i = 0; i < variables.size(); ++i) {
    if (!replaced[i]) environment.push_back(variables[i].first + "=" + variables[i].second);
  }
  return environment;
}

}  // namespace trainprof
