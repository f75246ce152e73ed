#include "trace/recording/files/recorded_json.h"

#include <nlohmann/json.hpp>

namespace trainprof::recording {

nlohmann::json ParseRecorded(std::string_view text) {
  using nlohmann::json;
  constexpr int kDeepest = 8;  // of what trainprof writes
  struct TooDeep {};
  const auto check = [](int depth, json::parse_event_t, json&) {
    return depth <= kDeepest ? true : throw TooDeep();
  };
  try {
    return json::parse(text, check, false);
  } catch (const TooDeep&) {
    return json::value_t::discarded;
  }
}

}  // namespace trainprof::recording
