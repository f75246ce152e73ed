#include "trace/recording/files/run_state.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/scratch_folder.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;

std::string Said(const testing::ScratchFolder& folder, const std::string& manifest) {
  std::ofstream(folder / kManifestFile) << manifest;
  return HowItWasKilled(folder.path());
}

TEST(RunEnd, TellsASignalFromAnExitAndBothFromNothing) {
  const testing::ScratchFolder folder;
  const auto manifest = [](const char* exit_code, const char* signal) {
    return std::string(R"({"format": "trainprof recording", "exit_code": )") + exit_code +
           R"(, "signal": )" + signal + "}";
  };
  EXPECT_EQ(Said(folder, manifest("0", "null")), "");
  EXPECT_EQ(Said(folder, manifest("3", "null")), "");
  EXPECT_EQ(Said(folder, manifest("137", "9")), "the program was ended by signal 9 (Killed)");
  EXPECT_EQ(Said(folder, manifest("null", "1000000")), "the program was ended by signal 1000000");
  const std::string unknown = "the run was killed: how the program ended was not recorded";
  EXPECT_EQ(Said(folder, manifest("null", "null")), unknown);
  fs::create_directories(folder / "rank-00000");
  EXPECT_EQ(HowItWasKilled(folder / "rank-00000" / "segment-0.tps"), unknown);
}

TEST(RunEnd, OfWhatIsNoManifestSaysNothing) {
  const testing::ScratchFolder folder;
  EXPECT_EQ(HowItWasKilled(folder.path()), "");
  EXPECT_EQ(HowItWasKilled(folder / "nothing"), "");
  for (const char* text : {"", "{", "[]", "null", R"({"signal": 9, "exit_code": null})",
                           R"({"format": "trainprof recording"})",
                           R"({"format": 3, "signal": null, "exit_code": null})"}) {
    EXPECT_EQ(Said(folder, text), "") << text;
  }
  const testing::ScratchFolder other;  // a link is not followed
  fs::create_symlink(folder / kManifestFile, other / kManifestFile);
  Said(folder, R"({"format": "trainprof recording", "signal": null, "exit_code": null})");
  EXPECT_EQ(HowItWasKilled(other.path()), "");
}

TEST(RunEnd, IsThatOfTheRunBehindALink) {
  const testing::ScratchFolder folder;
  fs::create_directories(folder / "run/rank-00000");
  std::ofstream(folder / "run/manifest.json")
      << R"({"format": "trainprof recording", "end_unix_ns": 5, "exit_code": 137, "signal": 9})";
  std::ofstream(folder / "run/rank-00000/7-1.tpz") << "x";
  fs::create_directory_symlink("run/rank-00000", folder / "rank");
  fs::create_symlink("run/rank-00000/7-1.tpz", folder / "segment.tpz");
  for (const char* path : {"run", "run/", "run/rank-00000", "rank", "rank/", "segment.tpz"}) {
    EXPECT_EQ(ReadRunState(folder / path).signal, 9) << path;
    EXPECT_NE(HowItWasKilled(folder / path), "") << path;
  }
}

TEST(RunEnd, OfOtherFilesInARunsFolderSaysNothing) {
  const testing::ScratchFolder folder;
  Said(folder, R"({"format": "trainprof recording", "exit_code": null, "signal": 9})");
  std::ofstream(folder / "trace.json") << "[]";
  fs::create_directory(folder / "traces");
  EXPECT_EQ(HowItWasKilled(folder / "trace.json"), "");
  EXPECT_EQ(HowItWasKilled(folder / "traces"), "");
}

TEST(RunEnd, NumbersThatNoProgramGivesAreNotKnown) {
  const testing::ScratchFolder folder;
  Said(folder, R"({"format": "trainprof recording", "exit_code": 4294967296, "signal": 1e300})");
  const RunState state = ReadRunState(folder.path());
  EXPECT_TRUE(state.known);
  EXPECT_FALSE(state.exit_code || state.signal);
}

TEST(RankFolders, ACopyOfOneIsNoneOfTheRun) {
  for (const char* name : {"rank-00001", "rank-1", "pid-4711", "pid-4711-a3c8271d"}) {
    EXPECT_TRUE(IsRankFolderName(name)) << name;
  }
  for (const char* name : {"rank-00001-old", "rank-dead-beef", "rank-1-2", "rank-", "pid-47-old",
                           "pid-4711-", "pid-4711-a3c8271d-old", "rank--1", "ranks"}) {
    EXPECT_FALSE(IsRankFolderName(name)) << name;
  }
}

// Who may write into the folder writes no file of others.
TEST(RecordedFolder, FilesHaveTheModeOfTheRunsOtherFiles) {
  const testing::ScratchFolder folder;
  for (const auto& [around, mode] : {std::pair(0777, 0640), {0750, 0640}, {0705, 0600}}) {
    fs::permissions(folder.path(), static_cast<fs::perms>(around));
    ASSERT_TRUE(OpenFolder(folder.path(), Links::kRefuse).value().Replace("x", "text"));
    EXPECT_EQ(fs::status(folder / "x").permissions(), static_cast<fs::perms>(mode));
  }
}

}  // namespace
}  // namespace trainprof::recording
