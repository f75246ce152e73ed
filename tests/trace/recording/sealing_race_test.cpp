// A segment that is sealed while its process ends: what is sealed is what the process left.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kChunks = 2000;  // finding them takes a reader some time

// What a process writes last, and when.
struct LastWrite {
  char path[256]{};
  off_t at = 0;
  uint64_t value = 0;
  unsigned delay_us = 0;
};

// A process that does what it reads from `orders`, once, and ends.
pid_t StartWriter(int (&orders)[2]) {
  EXPECT_EQ(pipe(orders), 0);
  const pid_t pid = fork();
  if (pid != 0) return pid;
  LastWrite last;
  if (read(orders[0], &last, sizeof last) != sizeof last) _exit(1);
  const int fd = open(last.path, O_RDWR | O_CLOEXEC);
  usleep(last.delay_us);
  _exit(pwrite(fd, &last.value, sizeof last.value, last.at) == sizeof last.value ? 0 : 1);
}

uint64_t StartOf(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  std::istringstream rest(line.substr(line.rfind(')') + 1));
  constexpr int kStartField = 22;
  std::string field;
  for (int i = 3; i <= kStartField; ++i) rest >> field;
  return std::stoull(field);
}

fs::path WriteChunks(const fs::path& folder, pid_t pid) {
  SegmentWriter writer(folder, pid);
  writer.header().process_start = StartOf(pid);
  writer.BeginWriter(0, 100);
  for (uint64_t i = 1; i <= kChunks; ++i) {
    if (i > 1) writer.NewChunk();
    writer.Push("step", 1000 * i);
    writer.Pop(1000 * i + 900);
  }
  writer.Finish();
  return writer.path();
}

// Takes back what the first chunk holds, which is written when its reader has long read on.
LastWrite TakeBackTheFirst(const fs::path& path) {
  Quality quality;
  const auto segment = recording::SegmentReader::Open(path, quality);
  EXPECT_TRUE(segment.ok());
  uint64_t payload = UINT64_MAX;
  for (const recording::Chunk& chunk : segment.value().chunks()) {
    payload = std::min(payload, chunk.file_offset);
  }
  LastWrite last;
  snprintf(last.path, sizeof last.path, "%s", path.c_str());
  last.at = static_cast<off_t>(payload - sizeof(recording::ChunkHeader) +
                               offsetof(recording::ChunkHeader, committed));
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const uint64_t none = 0;
  EXPECT_EQ(pread(fd, &last.value, sizeof last.value, last.at), ssize_t{sizeof last.value});
  EXPECT_EQ(pwrite(fd, &none, sizeof none, last.at), ssize_t{sizeof none});
  close(fd);
  return last;
}

TEST(SealRecording, KeepsWhatAProcessWroteLast) {
  for (unsigned round = 0; round < 20; ++round) {
    const ScratchFolder scratch;
    const fs::path run = scratch / "run";
    ASSERT_TRUE(recording::CreateRun(run, {}).ok());
    int orders[2];
    const pid_t pid = StartWriter(orders);
    const fs::path path = WriteChunks(run / "pid-1", pid);
    LastWrite last = TakeBackTheFirst(path);
    last.delay_us = 300 * round;
    ASSERT_EQ(write(orders[1], &last, sizeof last), ssize_t{sizeof last});
    for (bool is_sealed = false; !is_sealed;) {
      const auto summary = recording::SealRecording(run, {}, InAnHour());
      ASSERT_TRUE(summary.ok()) << summary.error();
      is_sealed = summary.value().left_raw == 0;
    }
    int status = 1;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
    close(orders[0]);
    close(orders[1]);
    const auto ranks = recording::ReadRecording(run);
    ASSERT_TRUE(ranks.ok()) << ranks.error();
    ASSERT_EQ(ranks.value().at(0).trace.ranges.size(), kChunks) << "round " << round;
  }
}

// Who asks whether a segment is still written holds a lease on it for a moment. Somebody who opens it just then, the
// supervisor's drainer, is not to kill him by that.
TEST(MayBeAlive, SurvivesThatTheFileIsOpenedMeanwhile) {
  const ScratchFolder scratch;
  SegmentWriter writer(scratch / "pid-1");
  writer.BeginWriter(0, 100);
  writer.Push("step", 1000);
  writer.Finish();
  const pid_t asking = fork();
  if (asking == 0) {
    for (int i = 0; i < 3000; ++i) recording::MayBeAlive(writer.path());
    _exit(0);
  }
  int status = -1;
  while (waitpid(asking, &status, WNOHANG) == 0) {
    const int fd = open(writer.path().c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(fd, 0);
    close(fd);
  }
  EXPECT_EQ(status, 0) << "killed by signal " << WTERMSIG(status);
}

}  // namespace
}  // namespace trainprof::testing
