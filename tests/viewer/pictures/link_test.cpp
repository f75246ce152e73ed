// "Copy view link": the command, run by a shell, shows what was on screen when it was copied.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/viewer/open_job.h"
#include "viewer/platform/screenshot.h"
#include "viewer/state/actions.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

std::string Bytes(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class ViewLinkTest : public ::testing::Test {
 protected:
  ViewLinkTest() {
    const fs::path job = folder_ / "it's a job, 100 %";
    fs::create_directories(job);
    fs::create_directories(folder_ / "elsewhere");
    Open(state_, WriteJob(job, {kLoaderBoundScript, kLoaderBoundScript}));
    WaitForAll(state_);
  }

  void ExpectThatTheLinkShowsWhatIsShown(const std::string& flags = "") {
    const fs::path shown = folder_ / "shown.png";
    const auto taken = TakeScreenshot(app_, {.file = shown});
    ASSERT_TRUE(taken.ok()) << taken.error();
    const std::string command =
        fmt::format("cd '{}' && PATH='{}':\"$PATH\" {}", (folder_ / "elsewhere").string(), TEST_BIN,
                    ViewLink(state_) + " --screenshot view.png" + flags);
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    EXPECT_GT(fs::file_size(shown), 10'000u);
    EXPECT_TRUE(Bytes(folder_ / "elsewhere" / "view.png") == Bytes(shown)) << command;
  }

  ScratchFolder folder_;
  App app_{Settings{}};
  State& state_ = app_.state();
};

TEST_F(ViewLinkTest, OfAStep) {
  ShowStep(state_, 7);
  ASSERT_EQ(StepInView(state_), 7);
  ExpectThatTheLinkShowsWhatIsShown();
}

TEST_F(ViewLinkTest, OfAFindingInTheLightTheme) {
  state_.settings.theme = ThemeName::kLight;
  OpenFindingNumber(state_, 1);
  ASSERT_TRUE(state_.finding);
  ExpectThatTheLinkShowsWhatIsShown(" --theme light");
}

TEST_F(ViewLinkTest, OfAnotherPlaceOfAFindingOfTheOtherRank) {
  ShowRank(state_, 1);
  OpenFindingNumber(state_, 1);
  ShowEvidence(state_, +1);
  ShowEvidence(state_, +1);
  ASSERT_EQ(state_.evidence, 2u);
  ASSERT_EQ(state_.finding->rank, 1u);
  ExpectThatTheLinkShowsWhatIsShown();
}

TEST_F(ViewLinkTest, OfSeveralStepsWithAnEventAndARange) {
  ShowTimes(state_, TraceTime{23'456'789}, TraceTime{61'234'567});
  SelectRange(state_, {{30'000'001}, {32'000'000}});
  SelectByText(state_, "name:gemm at:32.3ms");
  ASSERT_TRUE(state_.selected && state_.range) << state_.message;
  ExpectThatTheLinkShowsWhatIsShown();
}

}  // namespace
}  // namespace trainprof::testing
