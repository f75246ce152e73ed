// What lies in a run directory: its folders, their segments, its control block.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "trace/recording/wire/layout.h"

namespace trainprof::recording {

// RunControl as plain values.
struct ControlInfo {
  uint64_t max_bytes = 0;
  uint64_t used_bytes = 0;
  ClockKind clock_kind = ClockKind::kNone;
  ClockSample created{};
  uint32_t failed_processes = 0;
  uint64_t lost_events = 0;
  std::string failure;
};
std::optional<ControlInfo> ReadControl(const std::filesystem::path& run_dir);
// There is a control block, and it is none of any version.
bool IsControlDamaged(const std::filesystem::path& run_dir);

// The recording in `folder` that began last; `folder` itself where it is one. Nothing where there
// is none. Symbolic links and hidden folders are not looked at.
std::optional<std::filesystem::path> NewestRunIn(const std::filesystem::path& folder);

bool IsSegmentFile(const std::filesystem::path& path);  // by its name

// True for the folder of a whole run, false for one of its ranks' folders.
bool IsRunDirectory(const std::filesystem::path& path);

// Without links on its way, as far as the path exists: what the user names may be a link, what lies
// in a recording may not.
std::filesystem::path Resolved(const std::filesystem::path& path);

// The run that `path` is or belongs to, as a folder of its or a segment. Resolved(); empty for
// anything else, whatever it lies in.
std::filesystem::path RunOf(const std::filesystem::path& path);

// The segments of one rank's folder, by name. Where a raw and a sealed file of one process stand
// side by side (the sealer was killed between two steps), the sealed one alone. None where the
// folder is a link.
std::vector<std::filesystem::path> SegmentsIn(const std::filesystem::path& folder);

// Whether a folder of this name is a rank's, or that of a process without one.
bool IsRankFolderName(const std::string& name);

struct RankFolder {
  std::filesystem::path path;
  int rank = -1;  // of rank-00003
  std::vector<std::filesystem::path> segments;
  std::string error = {};  // why it cannot be read: no folder, a link, not permitted
};
// Folders that hold segments or cannot be read: ranks by number, then processes by pid.
std::vector<RankFolder> RankFoldersIn(const std::filesystem::path& run_dir);

}  // namespace trainprof::recording
