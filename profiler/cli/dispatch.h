// From argv to the command that runs: help, version, unknown commands, usage errors.
#pragma once

#include <string>
#include <vector>

namespace trainprof::cli {

// `arguments` is argv without the program's name. Returns the process's exit code.
int Dispatch(const std::vector<std::string>& arguments);

}  // namespace trainprof::cli
