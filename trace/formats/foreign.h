// Files of other tools that hold no trace which trainprof reads: what to do with each.
#pragma once

#include <string>
#include <string_view>

namespace trainprof {

// By the file's name, else by its first bytes: "a report of Nsight Systems, ...: do this". "" for
// what is not known.
std::string ForeignFileAdvice(const std::string& path, std::string_view first_bytes);

}  // namespace trainprof
