#include "trace/recording/segment_liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "trace/recording/run_directory.h"

namespace trainprof::recording {
namespace {

std::string FirstLine(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string Trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

// The process of that pid, when it is the one that began at `start` and is not a zombie.
bool Runs(int pid, uint64_t start) {
  const std::string line = FirstLine(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  std::string state;
  constexpr int kStateField = 3;
  constexpr int kStartField = 22;
  for (int i = kStateField; i <= kStartField && rest >> field; ++i) {
    if (i == kStateField) state = field;
  }
  return state != "Z" && state != "X" && field == std::to_string(start);
}

// A read lease is refused while anyone has the file open, or mapped, for writing.
bool IsMappedForWriting(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool refused = fcntl(fd, F_SETLEASE, F_RDLCK) != 0 && errno == EAGAIN;
  close(fd);
  return refused;
}

// False when either is not known.
bool IsOfAnotherBoot(const SegmentInfo& info, const std::string& boot) {
  return !boot.empty() && !info.boot_id.empty() && Trimmed(info.boot_id) != boot;
}

bool IsAlive(const std::filesystem::path& path) {
  if (path.extension() != kSegmentSuffix) return false;
  Quality ignored;
  const Result<SegmentReader> segment = SegmentReader::Open(path, ignored);
  if (!segment.ok() || segment.value().info().boot_id.empty()) return false;
  const SegmentInfo& info = segment.value().info();
  return !IsOfAnotherBoot(info, FirstLine("/proc/sys/kernel/random/boot_id")) &&
         (Runs(info.pid, info.process_start) || IsMappedForWriting(path));
}

}  // namespace

bool IsStillRecorded(const std::filesystem::path& path) {
  if (IsSegmentFile(path)) return IsAlive(path);
  std::vector<std::filesystem::path> segments = SegmentsIn(path);
  for (const RankFolder& folder : RankFoldersIn(path)) {
    segments.insert(segments.end(), folder.segments.begin(), folder.segments.end());
  }
  return std::any_of(segments.begin(), segments.end(), IsAlive);
}

bool MayBeAlive(const SegmentReader& segment) {
  const SegmentInfo& info = segment.info();
  const std::string boot = FirstLine("/proc/sys/kernel/random/boot_id");
  if (IsOfAnotherBoot(info, boot)) {
    char host[sizeof(SegmentHeader::host)] = {};
    gethostname(host, sizeof host - 1);
    return info.host != host;  // the same machine, before its last boot: surely dead
  }
  return Runs(info.pid, info.process_start) || IsMappedForWriting(segment.path());
}

}  // namespace trainprof::recording
