#include "tests/collectors/python_program.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace trainprof::testing {

namespace fs = std::filesystem;

std::vector<std::string> Pythons() {
  std::vector<fs::path> folders;
  std::istringstream path(getenv("PATH") == nullptr ? "" : getenv("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) folders.push_back(folder);
  std::error_code error;
  const fs::path home = getenv("HOME") == nullptr ? "" : getenv("HOME");
  for (const auto& version : fs::directory_iterator(home / ".pyenv" / "versions", error)) {
    folders.push_back(version.path() / "bin");
  }
  std::vector<std::string> found;
  for (int minor = 10; minor <= 13; ++minor) {
    for (const fs::path& folder : folders) {
      const fs::path python = folder / ("python3." + std::to_string(minor));
      // A shim is a script that starts another program.
      char magic[4] = {};
      std::ifstream(python, std::ios::binary).read(magic, sizeof magic);
      if (std::string(magic, 4) != "\177ELF") continue;
      found.push_back(python.string());
      break;
    }
  }
  return found;
}

PythonProgram::PythonProgram(const std::string& python, const std::string& script,
                             const std::string& file_name)
    : file_((folder_.path() / file_name).string()) {
  std::ofstream(file_) << script;
  int ends[2];
  if (pipe(ends) != 0) abort();
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(python.c_str(), python.c_str(), "-u", file_.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  output_ = ends[0];
  for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) first_line_ += c;
}

std::string PythonProgram::Rest() {
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(output_, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  return text;
}

void PythonProgram::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  close(output_);
  pid_ = -1;
}

}  // namespace trainprof::testing
