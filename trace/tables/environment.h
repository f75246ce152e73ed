// Looking up what a trace says of its program and machine: pairs of a name and a value.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace trainprof {

// The first value of that name; "" where there is none.
inline std::string_view EnvironmentValue(
    std::span<const std::pair<std::string, std::string>> environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace trainprof
