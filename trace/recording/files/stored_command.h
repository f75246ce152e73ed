// A command line as a recording keeps it.
#pragma once

#include <string>
#include <vector>

namespace trainprof::recording {

// Without secrets (secrets.h); with `arguments` false the program's name alone.
std::vector<std::string> StoredCommand(const std::vector<std::string>& command, bool arguments);

}  // namespace trainprof::recording
