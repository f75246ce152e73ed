// Opening a run that was killed: what its buffers held is there, and nothing else has changed.
#include "analysis/job/recover.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "analysis/job/job.h"
#include "tests/support/killed_run.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using namespace collectors;

struct Opened {
  std::string error;
  std::vector<Trace> traces;
  std::string notice;

  int64_t Kernels() const {
    int64_t kernels = 0;
    for (const Trace& trace : traces) kernels += static_cast<int64_t>(trace.device_ops.size());
    return kernels;
  }
  int64_t Count(std::string_view kind) const {
    int64_t count = 0;
    for (const Trace& trace : traces) count += trace.quality.CountOf(kind);
    return count;
  }
};

Opened Open(const fs::path& path) {
  Opened opened;
  LoadOptions options;
  options.notice = [&](const std::string& text) { opened.notice = text; };
  auto traces = LoadTraces(path, options);
  if (!traces.ok()) opened.error = traces.error();
  if (traces.ok()) opened.traces = std::move(traces).value();
  return opened;
}

// Names, kinds, sizes and contents of all that is in a folder.
std::string StateOf(const fs::path& folder) {
  std::string state;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    state += entry.path().string() + " ";
    if (entry.is_regular_file() && !entry.is_symlink()) {
      const std::vector<char> bytes = ReadBytes(entry.path());
      state.append(bytes.begin(), bytes.end());
    }
    state += "\n";
  }
  return state;
}

TEST(Recover, MakesRowsOfWhatAKilledProcessLeft) {
  const ScratchFolder scratch;
  const fs::path slots = WriteKilledRun(scratch / "run");
  const Opened first = Open(scratch / "run");
  EXPECT_EQ(first.error, "");
  EXPECT_EQ(first.Kernels(), kKilledKernels);
  EXPECT_NE(first.notice.find("10 GPU events"), std::string::npos) << first.notice;
  EXPECT_FALSE(fs::exists(slots));
  const Opened second = Open(scratch / "run");
  EXPECT_EQ(second.Kernels(), kKilledKernels);
  EXPECT_EQ(second.notice, "");
}

// The viewer opens one run after the other, and gives up on many.
TEST(Recover, ACancelledRecoveryLeavesNoZombie) {
  const ScratchFolder scratch;
  WriteKilledRun(scratch / "run");
  const std::atomic<bool> cancel = true;
  RecoverDead(scratch / "run", &cancel);
  siginfo_t child;  // not reaped by looking at it
  for (int ms = 0; waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) == 0; ++ms) {
    ASSERT_LT(ms, 5000) << "the worker has ended, and nobody waits for it";
    usleep(1000);
  }
  EXPECT_EQ(errno, ECHILD);
}

TEST(Recover, WorksForARankAndASegmentToo) {
  for (const bool segment : {false, true}) {
    const ScratchFolder scratch;
    const fs::path slots = WriteKilledRun(scratch / "run");
    const fs::path path = segment ? fs::path(slots).replace_extension() : slots.parent_path();
    EXPECT_EQ(Open(path).Kernels(), kKilledKernels);
    EXPECT_FALSE(fs::exists(slots));
  }
}

// A crafted recording made a report delete the slot files of another.
TEST(Recover, DoesNotFollowALinkedFolder) {
  const ScratchFolder scratch;
  const fs::path victim = WriteKilledRun(scratch / "victim");
  fs::remove(fs::path(victim).replace_extension());  // where there is no segment it was removed
  WriteKilledRun(scratch / "run", 1);
  fs::create_directory_symlink(victim.parent_path(), scratch / "run" / "rank-00000");
  const std::string before = StateOf(scratch / "victim");
  const Opened opened = Open(scratch / "run");
  EXPECT_EQ(opened.Kernels(), kKilledKernels);
  EXPECT_EQ(opened.Count("unreadable_segment"), 1);
  EXPECT_EQ(StateOf(scratch / "victim"), before);
}

TEST(Recover, DoesNotFollowALinkedSlotFileOrSegment) {
  for (const bool segment : {false, true}) {
    for (const bool hard : {false, true}) {
      const ScratchFolder scratch;
      const fs::path victim = WriteKilledRun(scratch / "victim");
      const fs::path slots = WriteKilledRun(scratch / "run");
      const fs::path link = segment ? fs::path(slots).replace_extension() : slots;
      fs::remove(link);
      const fs::path target = segment ? fs::path(victim).replace_extension() : victim;
      hard ? fs::create_hard_link(target, link) : fs::create_symlink(target, link);
      const std::string before = StateOf(scratch / "victim");
      const Opened opened = Open(scratch / "run");
      EXPECT_EQ(opened.Kernels(), 0);
      EXPECT_EQ(StateOf(scratch / "victim"), before);
      EXPECT_TRUE(fs::exists(slots));
      // Without a segment that can be read there is no trace to count in.
      EXPECT_EQ(opened.Count("unrecovered_device_records"), segment && !hard ? 0 : 1);
    }
  }
}

TEST(Recover, ASpecialFileInTheSlotFilesPlaceIsLeft) {
  for (const bool pipe : {true, false}) {
    const ScratchFolder scratch;
    const fs::path slots = WriteKilledRun(scratch / "run");
    fs::remove(slots);
    if (pipe) {
      ASSERT_EQ(mkfifo(slots.c_str(), 0600), 0);
    } else {
      fs::create_directory(slots);
    }
    const Opened opened = Open(scratch / "run");
    EXPECT_EQ(opened.error, "");
    EXPECT_EQ(opened.Count("unrecovered_device_records"), 1);
    EXPECT_TRUE(fs::exists(fs::symlink_status(slots)));
  }
}

TEST(Recover, WhatIsOfNoSegmentHereIsLeft) {
  const ScratchFolder scratch;
  const fs::path slots = WriteKilledRun(
      scratch / "run", 0, [](KilledRun& killed) { killed.header->segment_identity ^= 1; });
  const fs::path alone = slots.parent_path() / "9-9.tps.slots";
  fs::copy_file(slots, alone);
  EXPECT_EQ(Open(scratch / "run").Kernels(), 0);
  EXPECT_TRUE(fs::exists(slots));
  EXPECT_TRUE(fs::exists(alone));
}

// Moves the buffers as they are to another folder, where the collector would have made them.
fs::path MoveElsewhere(const fs::path& slots, const fs::path& folder) {
  const fs::path there = folder / (kElsewherePrefix + slots.filename().string());
  fs::rename(slots, there);
  SlotsElsewhere named{SlotsElsewhere::kMagic, {}};
  snprintf(named.folder, sizeof named.folder, "%s", folder.c_str());
  const char* const bytes = reinterpret_cast<const char*>(&named);
  WriteBytes(slots, std::vector<char>(bytes, bytes + sizeof named));
  return there;
}

TEST(Recover, BuffersElsewhereAreReadAndRemoved) {
  const ScratchFolder scratch;
  const ScratchFolder memory;
  const fs::path slots = WriteKilledRun(scratch / "run");
  const fs::path there = MoveElsewhere(slots, memory.path());
  EXPECT_EQ(Open(scratch / "run").Kernels(), kKilledKernels);
  EXPECT_FALSE(fs::exists(there));
  EXPECT_FALSE(fs::exists(slots));
}

TEST(Recover, BuffersElsewhereThatAreGoneOrNoFileOfOursAreSaidAndLeft) {
  for (const char* what : {"gone", "a link", "twice", "another's"}) {
    SCOPED_TRACE(what);
    const ScratchFolder scratch;
    const ScratchFolder memory;
    const fs::path slots = WriteKilledRun(scratch / "run");
    const fs::path there = MoveElsewhere(slots, memory.path());
    if (what == std::string("twice")) fs::create_hard_link(there, memory / "second");
    if (what == std::string("gone")) fs::remove(there);
    if (what == std::string("a link")) {
      fs::rename(there, memory / "target");
      fs::create_symlink(memory / "target", there);
    }
    if (what == std::string("another's")) {
      if (geteuid() != 0) continue;  // to give a file away needs root
      ASSERT_EQ(chown(there.c_str(), 1, 1), 0);
    }
    const std::string before = StateOf(memory.path());
    const Opened opened = Open(scratch / "run");
    EXPECT_EQ(opened.Kernels(), 0);
    EXPECT_EQ(opened.Count("unrecovered_device_records"), 1);
    EXPECT_EQ(StateOf(memory.path()), before);
    EXPECT_TRUE(fs::exists(slots));
  }
}

TEST(Recover, ALivingProcessIsLeftAlone) {
  const ScratchFolder scratch;
  const fs::path slots = WriteKilledRun(scratch / "run");
  const int writer = open(fs::path(slots).replace_extension().c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(writer, 0);
  const std::string before = StateOf(scratch / "run");
  EXPECT_EQ(Open(scratch / "run").Kernels(), 0);
  EXPECT_EQ(StateOf(scratch / "run"), before);
  close(writer);
}

// In doubt it is alive: another host of the same name, or this one before its last boot.
TEST(Recover, AnotherBootsProcessIsLeftAloneAndSaid) {
  const ScratchFolder scratch;
  const fs::path slots = WriteKilledRun(scratch / "run");
  const fs::path segment = fs::path(slots).replace_extension();
  std::vector<char> bytes = ReadBytes(segment);
  recording::SegmentHeader header{};
  memcpy(static_cast<void*>(&header), bytes.data(), sizeof header);
  strcpy(header.boot_id, "another boot");
  gethostname(header.host, sizeof header.host - 1);
  header.static_check =
      recording::CheckOf(&header, offsetof(recording::SegmentHeader, static_check));
  memcpy(bytes.data(), &header, sizeof header);
  WriteBytes(segment, bytes);
  const std::string before = StateOf(scratch / "run");
  const Opened opened = Open(scratch / "run");
  EXPECT_EQ(opened.Count("unrecovered_device_records"), 1);
  EXPECT_EQ(StateOf(scratch / "run"), before);
}

TEST(Recover, ARecordingOfAnotherUserIsNotChanged) {
  if (geteuid() != 0) GTEST_SKIP() << "to become another user needs root";
  const ScratchFolder scratch;
  fs::permissions(scratch.path(), fs::perms::all);
  const fs::path slots = WriteKilledRun(scratch / "run");
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
    fs::permissions(entry.path(), fs::perms::all);
  }
  fs::permissions(scratch / "run", fs::perms::all);
  const std::string before = StateOf(scratch / "run");
  constexpr uid_t kNobody = 65534;
  const pid_t reader = fork();
  if (reader == 0) {
    if (setuid(kNobody) != 0) _exit(2);
    const Opened opened = Open(scratch / "run");
    const bool said = opened.Count("unrecovered_device_records") == 1;
    _exit(said && opened.Kernels() == 0 && opened.traces.size() == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(reader, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(StateOf(scratch / "run"), before);
  // Nor is another user's changed by root.
  for (const auto& entry : fs::recursive_directory_iterator(scratch.path())) {
    ASSERT_EQ(lchown(entry.path().c_str(), kNobody, kNobody), 0);
  }
  EXPECT_EQ(Open(scratch / "run").Count("unrecovered_device_records"), 1);
  EXPECT_EQ(StateOf(scratch / "run"), before);
}

TEST(Recover, TimesOfAnySizeAreSurvived) {
  const uint64_t extremes[] = {1, INT64_MAX - 1, INT64_MAX, uint64_t{1} << 63, UINT64_MAX};
  for (const int64_t offset : {INT64_MIN, int64_t{-1}, int64_t{1}, INT64_MAX}) {
    const ScratchFolder scratch;
    WriteKilledRun(scratch / "run", 0, [&](KilledRun& killed) {
      killed.header->time_offset_ns = offset;
      for (int i = 0; i < kKilledKernels; ++i) {
        killed.kernels[i].start = extremes[i % 5];
        killed.kernels[i].end = extremes[(i + i / 5) % 5];
      }
    });
    LoadOptions options;
    EXPECT_TRUE(AnalyzePath(scratch / "run", options).ok());
  }
}

TEST(Recover, SlotFilesOfAnyBytesAreSurvived) {
  std::mt19937_64 random(7);
  for (int i = 0; i < testing::Rounds(80); ++i) {
    const ScratchFolder scratch;
    const fs::path slots = WriteKilledRun(scratch / "run");
    std::vector<char> bytes = ReadBytes(slots);
    for (uint64_t changes = 1 + random() % 8; changes > 0; --changes) {
      // The head of the header, its slots, the records.
      const size_t regions[] = {0, offsetof(SlotFileHeader, slot), kSlotBytes};
      const size_t at = regions[random() % 3] + random() % 400;
      const uint64_t word = random() >> random() % 64;
      memcpy(bytes.data() + at, &word, sizeof word);
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    WriteBytes(slots, bytes);
    const Opened opened = Open(scratch / "run");
    EXPECT_EQ(opened.error, "");
    EXPECT_EQ(opened.Count("corrupt_chunk"), 0);
  }
}

}  // namespace
}  // namespace trainprof
