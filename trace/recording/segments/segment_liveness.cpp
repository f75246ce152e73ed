#include "trace/recording/segments/segment_liveness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/wire/process_place.h"

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

// Of a zombie other threads than its first may run.
enum class ProcessState { kRuns, kZombie, kGone, kUnknown };

// The process of that pid which began at `start`.
ProcessState StateOf(int pid, uint64_t start) {
  const std::string line = FirstLine(("/proc/" + std::to_string(pid) + "/stat").c_str());
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) {
    // /proc may hide the processes of other users.
    const bool is_gone = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
    return is_gone ? ProcessState::kGone : ProcessState::kUnknown;
  }
  std::istringstream rest(line.substr(name_end + 1));
  std::string field;
  std::string state;
  constexpr int kStateField = 3;
  constexpr int kStartField = 22;
  for (int i = kStateField; i <= kStartField && rest >> field; ++i) {
    if (i == kStateField) state = field;
  }
  if (field != std::to_string(start)) return ProcessState::kGone;
  return state == "Z" || state == "X" ? ProcessState::kZombie : ProcessState::kRuns;
}

enum class Writers { kNone, kSome, kUnknown };

// Where a lease tells of all that a kernel does to a file: not on overlays, whose files are
// others', and not where other hosts have the file too.
bool IsLocal(int fd) {
  constexpr long kExt = 0xEF53, kXfs = 0x58465342, kTmpfs = 0x01021994, kF2fs = 0xF2F52010;
  constexpr long kBtrfs = 0x9123683E;
  struct statfs status {};
  if (fstatfs(fd, &status) != 0) return false;
  const long types[] = {kExt, kXfs, kTmpfs, kF2fs, kBtrfs};
  return std::find(std::begin(types), std::end(types), static_cast<long>(status.f_type)) !=
         std::end(types);
}

// A read lease is refused while anyone has the file open, or mapped, for writing.
Writers WritersOf(const std::filesystem::path& path) {
  const Result<RecordedFile> file = OpenRecorded(path, Links::kRefuse);
  if (!file.ok()) return Writers::kUnknown;
  const int fd = file.value().fd.get();
  // Who opens the file for writing while we hold it waits until it is closed below; what we are told of it by would
  // otherwise be SIGIO, which kills.
  fcntl(fd, F_SETSIG, SIGURG);
  if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
    return IsLocal(fd) ? Writers::kNone : Writers::kUnknown;
  }
  return errno == EAGAIN ? Writers::kSome : Writers::kUnknown;
}

std::string OurBoot() { return FirstLine(kBootIdFile); }

// False when either is not known.
bool IsOfAnotherBoot(const SegmentInfo& info, const std::string& boot) {
  return !boot.empty() && !info.boot_id.empty() && Trimmed(info.boot_id) != boot;
}

uint32_t OurPlace(const std::string& boot) {
  char link[64];
  const ssize_t bytes = readlink(kPidNamespaceLink, link, sizeof link);
  return PlaceOf(boot.data(), boot.size(), link, bytes < 0 ? 0 : static_cast<size_t>(bytes));
}

// Of <pid>-<start>-<place>.tps; 0: not known.
uint32_t PlaceInName(const std::filesystem::path& path) {
  const std::string stem = path.stem().string();
  long long pid = 0;
  long long start = 0;
  unsigned place = 0;
  return sscanf(stem.c_str(), "%lld-%lld-%8x", &pid, &start, &place) == 3 ? place : 0;
}

bool IsOfOurPlace(const std::filesystem::path& path, const std::string& boot) {
  const uint32_t place = PlaceInName(path);
  return place != 0 && place == OurPlace(boot);
}

// Whether this process's /proc tells of the segment's.
bool IsOfAnotherPlace(const std::filesystem::path& path, const std::string& boot) {
  const uint32_t place = PlaceInName(path);
  const uint32_t ours = OurPlace(boot);
  return place != 0 && ours != 0 && place != ours;
}

// By its process, and where that tells nothing by who has the file mapped: children that it forked have, too, and
// write nothing there.
bool IsWritten(const std::filesystem::path& path, const SegmentInfo& info,
               const std::string& boot) {
  const ProcessState state = StateOf(info.pid, info.process_start);
  if (state == ProcessState::kRuns) return true;
  if (IsOfOurPlace(path, boot) && state == ProcessState::kGone) return false;
  return WritersOf(path) == Writers::kSome;
}

bool IsAlive(const std::filesystem::path& path) {
  if (path.extension() != kSegmentSuffix) return false;
  const Result<SegmentInfo> head = SegmentReader::ReadInfo(path);
  if (!head.ok() || head.value().boot_id.empty()) return false;
  const SegmentInfo& info = head.value();
  const std::string boot = OurBoot();
  if (IsOfAnotherBoot(info, boot)) return false;
  if (IsOfAnotherPlace(path, boot)) return WritersOf(path) == Writers::kSome;
  return IsWritten(path, info, boot);
}

}  // namespace

bool IsNamedHere(const std::filesystem::path& segment) { return IsOfOurPlace(segment, OurBoot()); }

bool NobodyWrites(const std::filesystem::path& file) { return WritersOf(file) == Writers::kNone; }

bool IsStillRecorded(const std::filesystem::path& path) {
  if (IsSegmentFile(path)) return IsAlive(path);
  std::vector<std::filesystem::path> segments = SegmentsIn(path);
  for (const RankFolder& folder : RankFoldersIn(path)) {
    segments.insert(segments.end(), folder.segments.begin(), folder.segments.end());
  }
  return std::any_of(segments.begin(), segments.end(), IsAlive);
}

bool IsOfThisBoot(const SegmentInfo& info) {
  const std::string boot = OurBoot();
  return !boot.empty() && Trimmed(info.boot_id) == boot;
}

bool MayBeAlive(const std::filesystem::path& segment) {
  const Result<SegmentInfo> head = SegmentReader::ReadInfo(segment);
  // Its process may be about to write it.
  if (!head.ok()) return true;
  const SegmentInfo& info = head.value();
  const std::string boot = OurBoot();
  // Another host of that name, or this one before it was booted: not to be told apart.
  if (IsOfAnotherBoot(info, boot)) return true;
  // /proc does not show the processes of other containers.
  if (IsOfAnotherPlace(segment, boot)) return WritersOf(segment) != Writers::kNone;
  return IsWritten(segment, info, boot);
}

}  // namespace trainprof::recording
