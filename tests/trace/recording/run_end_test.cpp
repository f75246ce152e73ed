#include "trace/recording/run_end.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/trace/recording/scratch_folder.h"
#include "trace/recording/layout.h"

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

}  // namespace
}  // namespace trainprof::recording
