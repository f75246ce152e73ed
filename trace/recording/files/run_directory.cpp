#include "trace/recording/files/run_directory.h"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

#include "trace/recording/files/recorded_files.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRankPrefix = "rank-";
constexpr std::string_view kPidPrefix = "pid-";

// The number behind a prefix, or -1. That of a pid may be followed by the place where it holds
// (process_place.h): "pid-4711-a3c8271d".
int64_t NumberAfter(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return -1;
  name.remove_prefix(prefix.size());
  int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number < 0) return -1;
  name.remove_prefix(static_cast<size_t>(end - name.data()));
  const bool has_place = prefix == kPidPrefix && name.starts_with('-') && name.size() > 1 &&
                         name.find_first_not_of("0123456789abcdef", 1) == name.npos;
  return name.empty() || has_place ? number : -1;
}

std::vector<fs::path> SegmentsIn(const RecordedFolder& folder) {
  std::map<fs::path, fs::path> by_stem;
  for (const std::string& name : folder.Names()) {
    const fs::path path = folder.path() / name;
    if (!IsSegmentFile(path)) continue;
    fs::path& kept = by_stem[path.stem()];
    if (kept.empty() || path.extension() == kSealedSuffix) kept = path;
  }
  std::vector<fs::path> segments;
  for (const auto& [stem, path] : by_stem) segments.push_back(path);
  return segments;
}

// Of any version; false where there is none.
bool LoadControl(const fs::path& run_dir, RunControl& control) {
  const Result<RecordedFile> file = OpenRecorded(run_dir / kControlFile, Links::kFollow);
  return file.ok() &&
         ReadFully(file.value().fd.get(), 0, static_cast<void*>(&control), sizeof control) &&
         control.magic == RunControl::kMagic;
}

}  // namespace

bool IsControlDamaged(const fs::path& run_dir) {
  RunControl control{};
  std::error_code error;
  return fs::exists(run_dir / kControlFile, error) && !LoadControl(run_dir, control);
}

std::optional<ControlInfo> ReadControl(const fs::path& run_dir) {
  RunControl control{};
  if (!LoadControl(run_dir, control) || control.version != RunControl::kVersion) {
    return std::nullopt;
  }
  ControlInfo info;
  info.max_bytes = control.max_bytes;
  info.used_bytes = control.used_bytes.load();
  info.clock_kind = control.clock_kind;
  info.created = control.created;
  info.failed_processes = control.failed_processes.load();
  info.lost_events = control.lost_events.load();
  if (control.failure_written.load() == 2) {
    info.failure.assign(control.failure, strnlen(control.failure, sizeof control.failure));
  }
  return info;
}

bool IsRunDirectory(const fs::path& path) {
  return ReadControl(path).has_value() || !RankFoldersIn(path).empty();
}

fs::path Resolved(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  fs::path resolved = fs::weakly_canonical(absolute, error);
  return error ? absolute : resolved;
}

fs::path RunOf(const fs::path& path) {
  std::error_code error;
  const fs::path resolved = Resolved(path);
  if (!fs::is_directory(resolved, error)) {
    return IsSegmentFile(resolved) ? resolved.parent_path().parent_path() : fs::path();
  }
  if (fs::exists(resolved / kManifestFile, error) || IsRunDirectory(resolved)) return resolved;
  const bool is_ranks = IsRankFolderName(resolved.filename()) || !SegmentsIn(resolved).empty();
  return is_ranks ? resolved.parent_path() : fs::path();
}

std::optional<fs::path> NewestRunIn(const fs::path& folder) {
  if (ReadControl(folder)) return folder;
  std::optional<fs::path> newest;
  int64_t newest_ns = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    const bool is_folder = it->symlink_status(ignored).type() == fs::file_type::directory;
    const std::string name = it->path().filename().string();
    if (!is_folder || name.starts_with(".")) continue;
    const std::optional<ControlInfo> control = ReadControl(it->path());
    if (!control) continue;
    // Names decide between equal times, so that the answer is always the same.
    const auto key = std::pair(control->created.realtime_ns, name);
    if (newest && key < std::pair(newest_ns, newest->filename().string())) continue;
    newest = it->path();
    newest_ns = control->created.realtime_ns;
  }
  return newest;
}

bool IsSegmentFile(const fs::path& path) {
  return path.extension() == kSegmentSuffix || path.extension() == kSealedSuffix;
}

std::vector<fs::path> SegmentsIn(const fs::path& folder) {
  const Result<RecordedFolder> opened = OpenFolder(folder, Links::kRefuse);
  return opened.ok() ? SegmentsIn(opened.value()) : std::vector<fs::path>();
}

bool IsRankFolderName(const std::string& name) {
  return NumberAfter(kRankPrefix, name) >= 0 || NumberAfter(kPidPrefix, name) >= 0;
}

std::vector<RankFolder> RankFoldersIn(const fs::path& run_dir) {
  std::vector<RankFolder> folders;
  const Result<RecordedFolder> run = OpenFolder(run_dir, Links::kFollow);
  if (!run.ok()) return folders;
  for (const std::string& name : run.value().Names()) {
    if (!IsRankFolderName(name)) continue;
    const int64_t rank = NumberAfter(kRankPrefix, name);
    RankFolder folder{run_dir / name, rank <= INT32_MAX ? static_cast<int>(rank) : -1, {}};
    const Result<RecordedFolder> opened = OpenFolder(folder.path, Links::kRefuse);
    if (opened.ok()) {
      folder.segments = SegmentsIn(opened.value());
    } else {
      folder.error = opened.error();
    }
    if (!folder.segments.empty() || !folder.error.empty()) folders.push_back(std::move(folder));
  }
  std::sort(folders.begin(), folders.end(), [](const RankFolder& a, const RankFolder& b) {
    const auto key = [](const RankFolder& f) {
      const std::string name = f.path.filename().string();
      return std::tuple(f.rank < 0, f.rank, NumberAfter(kPidPrefix, name), name);
    };
    return key(a) < key(b);
  });
  return folders;
}

}  // namespace trainprof::recording
