// What happens to the recording, and never to the program, when the process or the disk gives out.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>

#include "tests/collectors/handed_over.h"
#include "tests/collectors/recorded_run.h"
#include "tests/support/sanitized.h"
#include "trace/recording/files/clock_log.h"
#include "trace/recording/files/run_directory.h"

namespace trainprof::testing {
namespace {

TEST(Kill, AtAHundredRandomMomentsLosesNothingThatWasHandedOver) {
  std::mt19937 random(20261120);
  std::uniform_int_distribution<int> delay_us(500, 40'000);
  long most = 0;
  int with_open = 0;
  const auto enough = [&](int kills) { return kills >= RandomKills() && with_open > 0; };
  for (int i = 0; !enough(i) && i < 10 * RandomKills(); ++i) {
    RecordedRun run;
    const auto file = run.Scratch("handed_over");
    const SharedCounts handed(file);
    const pid_t pid = run.Start({"numbered", file.string()});
    if (i % 2 == 0) AwaitFirst(*handed);  // the other half of the kills may hit the start
    usleep(static_cast<useconds_t>(delay_us(random)));
    kill(pid, SIGKILL);
    const int status = run.Wait();
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    auto ranks = recording::ReadRecording(run.directory());
    if (!ranks.ok()) {  // killed before its first range
      for (const auto& thread : (*handed).thread) ASSERT_EQ(thread.pushed, 0) << ranks.error();
      continue;
    }
    ASSERT_EQ(ranks.value().size(), 1u);
    const Trace& trace = ranks.value()[0].trace;
    ExpectNothingLost(trace, *handed);
    most = std::max<long>(most, static_cast<long>(trace.ranges.size()));
    with_open += trace.quality.CountOf("open_range_at_end") > 0;
  }
  EXPECT_GT(most, 1000) << "the kills came too early to show anything";
  EXPECT_GT(with_open, 0) << "no kill hit an open range: the loss was never stated";
}

TEST(Kill, SealedAfterwardsItReadsTheSame) {
  RecordedRun run;
  const auto file = run.Scratch("handed_over");
  const SharedCounts handed(file);
  const pid_t pid = run.Start({"numbered", file.string()});
  AwaitFirst(*handed);
  usleep(Rounds(50'000));
  const Trace live = run.ReadOne();  // while it runs
  EXPECT_GT(live.ranges.size(), 0u);
  kill(pid, SIGSTOP);
  const auto far = std::chrono::steady_clock::now() + std::chrono::hours(1);
  auto summary = recording::SealRecording(run.directory(), {}, far);
  ASSERT_TRUE(summary.ok()) << summary.error();
  EXPECT_EQ(summary.value().left_raw, 1u) << "a living process's segment must stay as it is";
  EXPECT_FALSE(summary.value().processes.at(0).ended);
  kill(pid, SIGKILL);
  run.Wait();
  const Trace raw = run.ReadOne();
  ExpectNothingLost(raw, *handed);
  const uint64_t raw_bytes = run.BytesOfSegments();
  summary = recording::SealRecording(run.directory(), {}, far);
  ASSERT_TRUE(summary.ok()) << summary.error();
  EXPECT_EQ(summary.value().left_raw, 0u);
  ASSERT_EQ(summary.value().processes.size(), 1u);
  EXPECT_TRUE(summary.value().processes[0].sealed);
  EXPECT_TRUE(summary.value().processes[0].ended);
  EXPECT_FALSE(summary.value().processes[0].clean_exit);
  EXPECT_EQ(summary.value().processes[0].events, raw.ranges.size());
  EXPECT_EQ(summary.value().processes[0].threads.size(), 3u);
  EXPECT_LT(run.BytesOfSegments(), raw_bytes / 2);
  const Trace sealed = run.ReadOne();
  EXPECT_EQ(sealed.ranges, raw.ranges);
  EXPECT_EQ(sealed.quality, raw.quality);
}

TEST(FileSizeLimit, EndsRecordingWithTheCauseAndNotTheProgram) {
  RecordedRun run;
  run.file_size_limit_bytes = 200'000;
  ASSERT_EQ(run.Run({"bulk", "100000"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(trace.quality.CountOf("recording_failed"), 1);
  EXPECT_EQ(static_cast<int64_t>(trace.ranges.size()) + trace.quality.CountOf("dropped_events"),
            300'000);
  EXPECT_EQ(trace.quality.CountOf("open_range_at_end"), 0) << "recorded pushes keep their pops";
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok());
  EXPECT_NE(summary.value().processes.at(0).failure.find("EFBIG"), std::string::npos);
}

TEST(FileSizeLimit, TooSmallForASegmentIsToldInTheRunsControlBlock) {
  RecordedRun run;
  run.file_size_limit_bytes = 1000;
  ASSERT_EQ(run.Run({"bulk", "10"}), 0);
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok()) << summary.error();
  EXPECT_EQ(summary.value().failed_processes, 1u);
  EXPECT_EQ(summary.value().lost_events, 30u);
  EXPECT_NE(summary.value().failure.find("EFBIG"), std::string::npos) << summary.value().failure;
  const auto ranks = recording::ReadRecording(run.directory());
  ASSERT_FALSE(ranks.ok());
  EXPECT_NE(ranks.error().find("EFBIG"), std::string::npos) << ranks.error();
}

// A file system of 512 KiB of its own.
class SmallDisk {
 public:
  SmallDisk() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tp-disk-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    mounted_ = mount("trainprof-test", path_.c_str(), "tmpfs", 0, "size=512k") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount(path_.c_str());
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  bool mounted() const { return mounted_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  bool mounted_;
};

TEST(FullDisk, EndsRecordingWithTheCauseAndNotTheProgram) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "mounting a small file system needs root";
  RecordedRun run(UINT64_MAX, disk.path());
  ASSERT_EQ(run.Run({"bulk", "100000"}), 0);
  const Trace trace = run.ReadOne();
  EXPECT_EQ(trace.quality.CountOf("recording_failed"), 1);
  EXPECT_EQ(static_cast<int64_t>(trace.ranges.size()) + trace.quality.CountOf("dropped_events"),
            300'000);
  EXPECT_GT(trace.ranges.size(), 1000u);
  const auto summary = recording::SummarizeRecording(run.directory());
  ASSERT_TRUE(summary.ok());
  EXPECT_NE(summary.value().processes.at(0).failure.find("ENOSPC"), std::string::npos);
}

TEST(Directory, RemovedMeanwhileTheProgramRunsOn) {
  RecordedRun run;
  run.Start({"steps", "200", "1"});
  usleep(50'000);
  std::filesystem::remove_all(run.directory());
  EXPECT_EQ(run.Wait(), 0);
}

TEST(Directory, WithoutARunTheLibraryStaysOut) {
  RecordedRun run;
  std::filesystem::remove(run.directory() / recording::kControlFile);
  EXPECT_EQ(run.Run({"bulk", "10"}), 0);
  EXPECT_EQ(run.BytesOfSegments(), 0u);
}

TEST(Directory, WithoutTheVariableTheLibraryStaysOut) {
  RecordedRun run;
  run.environment[recording::kEnvRunDirectory] = "";
  EXPECT_EQ(run.Run({"bulk", "10"}), 0);
  EXPECT_EQ(run.BytesOfSegments(), 0u);
}

// Others may write in the folder, too, and put links there.
TEST(Directory, ALinkInItIsNotFollowed) {
  RecordedRun run;
  std::filesystem::create_directory(run.Scratch("elsewhere"));
  std::filesystem::create_directory_symlink(run.Scratch("elsewhere"),
                                            run.directory() / "rank-00000");
  run.environment["RANK"] = "0";
  EXPECT_EQ(run.Run({"bulk", "10"}), 0);
  EXPECT_TRUE(std::filesystem::is_empty(run.Scratch("elsewhere")));
  const auto control = recording::ReadControl(run.directory());
  ASSERT_TRUE(control);
  EXPECT_EQ(control->failed_processes, 1u);
  EXPECT_NE(control->failure.find("a link"), std::string::npos) << control->failure;
}

TEST(Directory, AControlFileElsewhereIsNoRun) {
  RecordedRun run;
  const std::filesystem::path control = run.directory() / recording::kControlFile;
  std::filesystem::rename(control, run.Scratch("control"));
  std::filesystem::create_symlink(run.Scratch("control"), control);
  EXPECT_EQ(run.Run({"bulk", "10"}), 0);
  EXPECT_EQ(run.BytesOfSegments(), 0u);
}

}  // namespace
}  // namespace trainprof::testing
