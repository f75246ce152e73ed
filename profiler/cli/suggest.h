// What was meant by a word that is none of ours: the nearest option or command.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profiler/cli/command.h"

namespace trainprof::cli {

// The first word among `tokens` that looks like an option and is none of the parser's: a message
// that names it, with what was meant where that can be told. Nothing when all are known.
std::optional<std::string> UnknownOption(const CLI::App& parser,
                                         const std::vector<std::string>& tokens);

// What to do instead of `trainprof NAME REST...`: a message of one line or more, without a newline
// at its end.
std::string UnknownCommandMessage(const std::string& name, const std::vector<std::string>& rest);

}  // namespace trainprof::cli
