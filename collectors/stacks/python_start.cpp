#include "collectors/stacks/python_start.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
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

// The zero-terminated words of a file of /proc; none where it cannot be read.
std::vector<std::string> WordsOf(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// "" where the variable is not there.
std::string ValueOf(const std::vector<std::string>& environment, std::string_view variable) {
  for (const std::string& entry : environment) {
    if (entry.size() > variable.size() && entry.starts_with(variable) &&
        entry[variable.size()] == '=') {
      return entry.substr(variable.size() + 1);
    }
  }
  return "";
}

// Of a PYTHONPATH: the folder before ours that has a sitecustomize of its own, which is then the one
// that Python imports; or that ours is not there.
std::optional<std::string> WhatHides(const std::string& ours, const std::string& python_path) {
  std::istringstream folders(python_path);
  std::error_code error;
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (folder == ours) return std::nullopt;
    if (!folder.empty() && fs::exists(fs::path(folder) / "sitecustomize.py", error)) {
      return fmt::format(
          "the sitecustomize.py in {} comes before trainprof's. Put that folder last in "
          "PYTHONPATH",
          folder);
    }
  }
  return "its PYTHONPATH was replaced. Put the new folders before the old ones: "
         "PYTHONPATH=NEW:$PYTHONPATH";
}

bool IsPython(std::string_view path) {
  return path.substr(path.rfind('/') + 1).starts_with("python");
}

// As the end of a sentence.
std::string_view RemedyFor(std::string_view option) {
  return option == "-S" ? "start it without"
                        : "start it without, or install trainprof there (pip install trainprof)";
}

}  // namespace

bool HasCollector(const fs::path& proc_folder) {
  std::ifstream maps(proc_folder / "maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.ends_with("/libtrainprof_injection.so")) return true;
  }
  return false;
}

std::string OptionThatHidesHooks(const std::vector<std::string>& program) {
  if (program.empty()) return "";
  if (!IsPython(program.front())) return "";
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

std::optional<std::string> WhyNoHooks(const fs::path& proc_folder, bool may_be_loaded) {
  const std::vector<std::string> program = WordsOf(proc_folder / "cmdline");
  const std::vector<std::string> environment = WordsOf(proc_folder / "environ");
  if (program.empty()) return std::nullopt;  // it is ending
  if (HasCollector(proc_folder)) return std::nullopt;
  if (const std::string option = OptionThatHidesHooks(program); !option.empty()) {
    return fmt::format("Python's {} keeps them out: {}", option, RemedyFor(option));
  }
  if (environment.empty() && access((proc_folder / "environ").c_str(), R_OK) != 0) {
    return std::nullopt;  // another user's
  }
  // A program that names itself anew (setproctitle) does so in the memory that this file shows.
  const auto is_variable = [](const std::string& entry) {
    return entry.find('=') != std::string::npos;
  };
  if (!std::all_of(environment.begin(), environment.end(), is_variable)) return std::nullopt;
  if (ValueOf(environment, "TRAINPROF_DIR").empty()) {
    return "its environment was emptied (env -i, sudo, a launcher that gives one of its own). Pass the "
           "environment on, or start trainprof run inside";
  }
  const std::string ours = ValueOf(environment, "TRAINPROF_PYTHON");
  if (!ours.empty() && !HasOurStart(program.front())) {
    const auto hides = WhatHides(ours, ValueOf(environment, "PYTHONPATH"));
    if (hides) return hides;
  }
  if (!may_be_loaded) return std::nullopt;
  std::error_code error;
  const std::string executable = fs::read_symlink(proc_folder / "exe", error).string();
  if (error || IsPython(executable)) return std::nullopt;
  return fmt::format(
      "the Python in {} imports no sitecustomize, as frozen programs do. Start the "
      "script with python itself",
      fs::path(executable).filename().string());
}

}  // namespace trainprof
