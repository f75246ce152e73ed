// manifest.json: the run in words and numbers, for people and programs that do not read segments.
#pragma once

#include <filesystem>

#include "trace/recording/seal/sealer.h"

namespace trainprof::recording {

// Writes it beside and renames, so that a reader never meets half of one. `summary` may be nullptr:
// the run has just begun.
Result<void> WriteManifest(const std::filesystem::path& run_dir, const RunDescription& run,
                           const RecordingSummary* summary);

}  // namespace trainprof::recording
