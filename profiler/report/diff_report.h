// A comparison (analysis/job/diff.h) as people and as programs read it.
#pragma once

#include <string>

#include "analysis/job/diff.h"
#include "profiler/report/renderer.h"

namespace trainprof {

// Verdict first, then tables, largest difference first. At most a screen, unless `all`: then no row
// is left out. What a terminal would obey is shown as text.
std::string DiffText(const Diff& diff, bool all, const RenderOptions& options);

// docs/diff.schema.json
std::string DiffJson(const Diff& diff);

}  // namespace trainprof
