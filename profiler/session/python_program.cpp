#include "profiler/session/python_program.h"

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string_view>
#include <system_error>

namespace trainprof {
namespace {

namespace fs = std::filesystem;

// As the shell finds it; empty where there is none.
fs::path InPath(const std::string& name) {
  if (name.find('/') != std::string::npos) return name;
  const char* folders = std::getenv("PATH");
  std::istringstream stream(folders == nullptr ? "" : folders);
  std::error_code error;
  for (std::string folder; std::getline(stream, folder, ':');) {
    if (fs::exists(fs::path(folder) / name, error)) return fs::path(folder) / name;
  }
  return {};
}

// Whether trainprof is installed with the interpreter (packaging/trainprof.pth): its packages lie in
// ../lib/python3.11/site-packages, or what Debian calls it.
bool HasOurStart(const std::string& interpreter) {
  const fs::path path = InPath(interpreter);
  std::error_code error;
  const fs::path prefix = fs::absolute(path, error).parent_path().parent_path();
  for (const char* library : {"lib", "lib64"}) {
    fs::directory_iterator it(prefix / library, error);
    for (; !error && it != fs::directory_iterator(); it.increment(error)) {
      if (!it->path().filename().string().starts_with("python")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        if (fs::exists(it->path() / packages / "trainprof.pth", error)) return true;
      }
    }
  }
  return false;
}

}  // namespace

std::string OptionThatHidesHooks(const std::vector<std::string>& program) {
  if (program.empty()) return "";
  const std::string_view path = program.front();
  if (!path.substr(path.rfind('/') + 1).starts_with("python")) return "";
  for (size_t i = 1; i < program.size(); ++i) {
    const std::string_view word = program[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return "";
    for (const char option : word.substr(1)) {
      if (option == 'S') return "-S";
      if (option == 'E' || option == 'I') {
        return HasOurStart(program.front()) ? std::string() : std::string{'-', option};
      }
      if (option == 'c' || option == 'm') return "";  // the program follows
      if (option == 'W' || option == 'X') {           // a value follows, in this word or the next
        i += word.back() == option ? 1 : 0;
        break;
      }
    }
  }
  return "";
}

}  // namespace trainprof
