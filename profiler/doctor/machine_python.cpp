// What this machine can record: Python and torch. torch is not imported (that takes seconds): its
// version file is read.
#include <stdio.h>
#include <sys/wait.h>

#include <fmt/format.h>

#include <sstream>
#include <stdexcept>

#include "profiler/doctor/machine.h"
#include "profiler/doctor/machine_probe.h"
#include "profiler/process/isolated.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// Prints: version, executable, torch's version.py (or an empty line), then the package folders.
constexpr char kAskPython[] =
    "exec python3 -c '"
    "import sys, os, importlib.util\n"
    "print(sys.version.split()[0])\n"
    "print(sys.executable)\n"
    "spec = importlib.util.find_spec(\"torch\")\n"
    "print(os.path.join(os.path.dirname(spec.origin), \"version.py\")"
    " if spec and spec.origin else \"\")\n"
    "print(\"\\n\".join(p for p in sys.path if os.path.isdir(p)))\n"
    "' 2>/dev/null </dev/null";

struct PythonAnswer {
  std::string version;
  std::string executable;
  std::string torch_version_file;
  std::vector<fs::path> folders;
};

std::string AskPython() {
  FILE* pipe = popen(kAskPython, "re");
  if (pipe == nullptr) throw std::runtime_error("cannot start a shell");
  std::string text;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  const int status = pclose(pipe);
  if (status == 0) return text;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
    throw std::runtime_error("no python3 in PATH");
  throw std::runtime_error("python3 does not start");
}

PythonAnswer Parse(const std::string& text) {
  PythonAnswer answer;
  std::istringstream stream(text);
  std::getline(stream, answer.version);
  std::getline(stream, answer.executable);
  std::getline(stream, answer.torch_version_file);
  for (std::string folder; std::getline(stream, folder);) answer.folders.emplace_back(folder);
  return answer;
}

// The value of `name = 'value'` or `name: Optional[str] = 'value'`; empty when None or absent.
std::string Assigned(const std::string& source, const std::string& name) {
  std::istringstream stream(source);
  for (std::string line; std::getline(stream, line);) {
    const bool ours =
        line.rfind(name, 0) == 0 && line.size() > name.size() &&
        (line[name.size()] == ' ' || line[name.size()] == ':' || line[name.size()] == '=');
    const size_t equals = line.find('=');
    if (!ours || equals == std::string::npos) continue;
    const size_t begin = line.find_first_of("'\"", equals);
    const size_t end = begin == std::string::npos ? begin : line.find(line[begin], begin + 1);
    if (end != std::string::npos) return line.substr(begin + 1, end - begin - 1);
  }
  return {};
}

MachineCheck Torch(const PythonAnswer& python) {
  if (python.torch_version_file.empty()) {
    return {"torch", "torch", CheckState::kInfo, "not installed in this Python",
            "activate the environment that you train in"};
  }
  const std::string source = ReadWhole(python.torch_version_file);
  const std::string version = Assigned(source, "__version__");
  const std::string cuda = Assigned(source, "cuda");
  return {"torch", "torch", CheckState::kOk,
          fmt::format("{}, {}", version.empty() ? "version unknown" : version,
                      cuda.empty() ? "CPU build" : "built for CUDA " + cuda),
          ""};
}

}  // namespace

PythonChecks CheckPython(SignalInbox& inbox) {
  const IsolatedResult asked = RunIsolated(AskPython, {kProbeLimit}, inbox);
  if (!asked.ok) {
    return {{{"python", "Python", CheckState::kInfo, asked.text,
              "activate the environment that you train in; programs in C++ need none"}},
            {}};
  }
  const PythonAnswer python = Parse(asked.text);
  return {{{"python", "Python", CheckState::kOk,
            fmt::format("{} ({})", python.version, python.executable), ""},
           Torch(python)},
          python.folders};
}

}  // namespace trainprof
