#include "analysis/job/recover.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "collectors/salvage/salvage.h"
#include "collectors/salvage/slot_files.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/files/run_lock.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/wire/layout.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using collectors::SalvageCounts;
using recording::Links;
using recording::RecordedFolder;

constexpr std::chrono::seconds kRecoverLimit{5};
constexpr int kCancelPollMs = 10;

// RUN/FOLDER/SEGMENT.slots of all folders.
std::vector<fs::path> SlotFilesOf(const RecordedFolder& run) {
  std::vector<fs::path> found;
  for (const std::string& name : run.Names()) {
    if (!recording::IsRankFolderName(name)) continue;
    const auto folder = run.Enter(name);
    if (!folder.ok()) continue;
    for (const std::string& file : folder.value().Names()) {
      if (collectors::IsSlotFile(file)) found.push_back(folder.value().path() / file);
    }
  }
  return found;
}

// In the worker. Its output is the counts; nobody shall wait for it at another descriptor.
[[noreturn]] void Salvage(const fs::path& run_dir, int pipe_end) {
  // Half a buffer made rows of twice would show its events twice.
  for (const int ending : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) signal(ending, SIG_IGN);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; null >= 0 && fd <= STDERR_FILENO; ++fd) dup2(null, fd);
  const auto now = std::chrono::steady_clock::now();
  SalvageCounts counts;
  if (recording::LockRun(run_dir, now)) {
    counts = collectors::SalvageSlots(run_dir, now + kRecoverLimit);
  }
  (void)!write(pipe_end, &counts, sizeof counts);
  _exit(0);
}

void Reap(pid_t worker) {
  while (waitpid(worker, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// In a process of its own: it takes over the collector's state, and damaged files end there.
SalvageCounts SalvageApart(const fs::path& run_dir, const std::atomic<bool>* cancel) {
  SalvageCounts counts;
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return counts;
  const pid_t worker = fork();
  if (worker == 0) Salvage(run_dir, pipe_ends[1]);
  close(pipe_ends[1]);
  pollfd answer = {pipe_ends[0], POLLIN, 0};
  bool ended = worker < 0;
  while (!ended) {
    if (cancel != nullptr && cancel->load()) break;  // it ends by itself
    ended = poll(&answer, 1, kCancelPollMs) > 0;
  }
  if (ended && worker > 0) {
    if (read(pipe_ends[0], &counts, sizeof counts) != sizeof counts) counts = {};
    Reap(worker);
  } else if (worker > 0) {
    std::thread(Reap, worker).detach();
  }
  close(pipe_ends[0]);
  return counts;
}

// Why the buffers are as they were; empty where that is as it should be.
std::string WhyLeft(const fs::path& slots, bool is_ours) {
  const fs::path segment = fs::path(slots).replace_extension();  // X.tps.slots -> X.tps
  if (recording::IsStillRecorded(segment)) return {};
  const std::string what = slots.filename().string() +
                           ": GPU records of a process that was killed, which are not shown: ";
  if (!is_ours) {
    return what +
           "the recording belongs to another user, and is not changed; its owner can open it";
  }
  Quality ignored;
  const auto opened = recording::SegmentReader::Open(segment, ignored);
  if (!opened.ok()) return what + opened.error();
  if (recording::MayBeAlive(segment)) {
    return what +
           "the process may still be at work, in another container, on another machine or before "
           "this one's last boot";
  }
  const auto folder = recording::OpenFolder(slots.parent_path(), Links::kRefuse);
  if (!folder.ok()) return what + folder.error();
  const auto found = collectors::FoundSlots::Find(folder.value(), slots.filename());
  if (!found.ok()) return what + found.error();
  return what + "the file is damaged, or cannot be written to";
}

}  // namespace

Recovery RecoverDead(const fs::path& path, const std::atomic<bool>* cancel) {
  Recovery recovery;
  const fs::path run_dir = recording::RunOf(path);
  if (run_dir.empty() || !recording::ReadControl(run_dir)) return recovery;
  const auto run = recording::OpenFolder(run_dir, Links::kFollow);
  if (!run.ok() || SlotFilesOf(run.value()).empty()) return recovery;
  const bool is_ours = run.value().owner() == geteuid();
  if (is_ours) {
    const SalvageCounts counts = SalvageApart(run_dir, cancel);
    recovery.rows = counts.rows;
    recovery.files = counts.files;
  }
  for (const fs::path& slots : SlotFilesOf(run.value())) {
    std::string why = WhyLeft(slots, is_ours);
    if (why.empty()) continue;
    recovery.left.push_back({slots.parent_path().filename().string(), std::move(why)});
  }
  return recovery;
}

}  // namespace trainprof
