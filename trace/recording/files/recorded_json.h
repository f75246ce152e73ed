// JSON of a recording, which may come from anybody.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace trainprof::recording {

// "discarded" where it is no JSON. So is what is nested deeper than anything that trainprof writes:
// a bracket takes 64 bytes as a tree.
nlohmann::json ParseRecorded(std::string_view text);

}  // namespace trainprof::recording
