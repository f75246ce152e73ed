#include "viewer/platform/settings_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/scratch_folder.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;

class SettingsFile : public ::testing::Test {
 protected:
  Settings Loaded(const std::string& text) {
    std::ofstream(path_) << text;
    return LoadSettings(path_);
  }
  ScratchFolder folder_;
  fs::path path_ = folder_ / "viewer.json";
};

TEST_F(SettingsFile, GivesBackWhatWasSaved) {
  Settings settings;
  settings.theme = ThemeName::kLight;
  settings.scale = 1.5f;
  settings.bottom_height = 301;
  settings.show_overview = false;
  settings.window_width = 1234;
  settings.recent = {"/a/b.json", "/tmp/run \"x\""};
  const fs::path path = folder_ / "new" / "folder" / "viewer.json";
  ASSERT_TRUE(SaveSettings(path, settings).ok());
  EXPECT_EQ(LoadSettings(path), settings);
}

TEST_F(SettingsFile, WhateverIsWrongWithItTheDefaultsAreTaken) {
  EXPECT_EQ(LoadSettings(path_), Settings{}) << "no file";
  EXPECT_EQ(LoadSettings({}), Settings{}) << "no path";
  EXPECT_EQ(LoadSettings(folder_.path()), Settings{}) << "a folder";
  for (const char* text :
       {"", "{", "[]", "7", "null", "\xff\xfe", "{\"scale\": \"big\"}",
        "{\"scale\": 1e99, \"bottom_height\": -1, \"window_width\": 0.5}",
        "{\"theme\": 7, \"show_ribbon\": \"no\", \"recent\": {}}", "{\"recent\": [7, null, []]}"}) {
    EXPECT_EQ(Loaded(text), Settings{}) << text;
  }
}

TEST_F(SettingsFile, OneWrongValueDoesNotCostTheOthers) {
  const Settings settings = Loaded(R"({"theme": "light", "scale": "big", "names_width": 300})");
  EXPECT_EQ(settings.theme, ThemeName::kLight);
  EXPECT_EQ(settings.scale, 0);
  EXPECT_EQ(settings.names_width, 300);
}

TEST_F(SettingsFile, SaysWhereItCannotBeWritten) {
  std::ofstream(path_) << "a file";
  const auto written = SaveSettings(path_ / "viewer.json", {});
  ASSERT_FALSE(written.ok());
  EXPECT_NE(written.error().find(path_.string()), std::string::npos);
  EXPECT_FALSE(SaveSettings({}, {}).ok());
}

TEST_F(SettingsFile, NamesThatAreNotUtf8AreNoObstacle) {
  Settings settings;
  settings.recent = {fs::path("/tmp/\xff\xfe.json")};
  ASSERT_TRUE(SaveSettings(path_, settings).ok());
  EXPECT_EQ(LoadSettings(path_).recent.size(), 1u);
}

}  // namespace
}  // namespace trainprof::testing
