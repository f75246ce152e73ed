// What Perfetto asks of a Chrome trace, as expectations.
#pragma once

#include <nlohmann/json.hpp>

namespace trainprof {

// Metadata stands first, complete events of a track nest, ids are integers, arrows begin once and
// in a slice. With `names_all` each process and thread that has events has a name and a place.
void ExpectPerfettoRules(const nlohmann::json& document, bool names_all = false);

}  // namespace trainprof
