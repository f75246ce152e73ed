// Python programs that tests look at from outside, with every Python that is installed.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"

namespace trainprof::testing {

// Executables of Python 3.10 to 3.13: on PATH, and pyenv's. One of each minor version.
std::vector<std::string> Pythons();

// A script that runs until it is destroyed. Stands still in the constructor until the script has
// printed its first line.
class PythonProgram {
 public:
  PythonProgram(const std::string& python, const std::string& script,
                const std::string& file_name = "script.py");
  ~PythonProgram() { Kill(); }
  PythonProgram(const PythonProgram&) = delete;
  PythonProgram& operator=(const PythonProgram&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& first_line() const { return first_line_; }
  const std::string& file() const { return file_; }
  // All that it prints from here on, until it ends.
  std::string Rest();
  void Kill();

 private:
  ScratchFolder folder_;
  std::string file_;
  pid_t pid_ = -1;
  int output_ = -1;
  std::string first_line_;
};

}  // namespace trainprof::testing
