#include "trace/recording/run_directory.h"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRankPrefix = "rank-";
constexpr std::string_view kPidPrefix = "pid-";

// The number behind a prefix, or -1.
int64_t NumberAfter(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix)) return -1;
  name.remove_prefix(prefix.size());
  int64_t number = -1;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number >= 0 ? number : -1;
}

}  // namespace

std::optional<ControlInfo> ReadControl(const fs::path& run_dir) {
  std::ifstream file(run_dir / kControlFile, std::ios::binary);
  RunControl control{};
  if (!file.read(reinterpret_cast<char*>(&control), sizeof control) ||
      control.magic != RunControl::kMagic || control.version != RunControl::kVersion) {
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

bool IsSegmentFile(const fs::path& path) {
  return path.extension() == kSegmentSuffix || path.extension() == kSealedSuffix;
}

std::vector<fs::path> SegmentsIn(const fs::path& folder) {
  std::map<fs::path, fs::path> by_stem;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const fs::path& path = it->path();
    if (!IsSegmentFile(path)) continue;
    fs::path& kept = by_stem[path.stem()];
    if (kept.empty() || path.extension() == kSealedSuffix) kept = path;
  }
  std::vector<fs::path> segments;
  for (const auto& [stem, path] : by_stem) segments.push_back(path);
  return segments;
}

std::vector<RankFolder> RankFoldersIn(const fs::path& run_dir) {
  std::vector<RankFolder> folders;
  std::error_code error;
  for (fs::directory_iterator it(run_dir, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_directory(ignored)) continue;
    const std::string name = it->path().filename().string();
    const int64_t rank = NumberAfter(kRankPrefix, name);
    if (rank < 0 && NumberAfter(kPidPrefix, name) < 0) continue;
    std::vector<fs::path> segments = SegmentsIn(it->path());
    if (segments.empty()) continue;
    folders.push_back(
        {it->path(), rank <= INT32_MAX ? static_cast<int>(rank) : -1, std::move(segments)});
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
