// A command line as a recording keeps it.
#include "trace/recording/files/stored_command.h"

#include <algorithm>

#include "trace/recording/wire/secrets.h"

namespace trainprof::recording {

std::vector<std::string> StoredCommand(const std::vector<std::string>& command, bool arguments) {
  std::string joined;
  for (const std::string& argument : command) {
    joined += argument + '\0';
    if (!arguments) break;
  }
  // A mask may be longer than a value of one character.
  std::string masked(joined.size() * (1 + secrets::kMask.size()), '\0');
  masked.resize(MaskSecrets(joined.data(), joined.size(), '\0', masked.data(), masked.size()));
  std::vector<std::string> stored;
  for (size_t begin = 0; !joined.empty() && begin <= masked.size();) {
    const size_t end = std::min(masked.find('\0', begin), masked.size());
    stored.push_back(masked.substr(begin, end - begin));
    begin = end + 1;
  }
  return stored;
}

}  // namespace trainprof::recording
