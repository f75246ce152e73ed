// Pictures of the viewer's main states, in both themes, beside those that were looked at before.
// They are compared small: layout, colours and where there is text must stay; how a font is drawn
// may differ between machines. Other sizes and scales: tests/viewer/app/layout_test.cpp.
//
//   TRAINPROF_WRITE_PICTURES=1 build/dev/bin/viewer_pictures_test    # after looking at them
//
// The pictures are left in the build folder, pictures/.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <png.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "tests/support/scratch_folder.h"
#include "tests/viewer/scenes.h"
#include "viewer/platform/png_file.h"
#include "viewer/platform/screenshot.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

struct Image {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;  // 4 bytes each

  const uint8_t* At(int x, int y) const {
    return &pixels[4 *
                   (static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x))];
  }
};

// All sizes of pictures are a multiple of it.
constexpr int kSmallWidth = 160;
constexpr int kSmallHeight = 90;
// A colour that differs by more is another one, and so many of them are another picture.
constexpr int kSameColour = 20;
constexpr double kMostOtherShare = 0.02;

Image ReadPng(const fs::path& path) {
  Image image;
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_file(&png, path.c_str()) == 0) return image;
  png.format = PNG_FORMAT_RGBA;
  image.pixels.resize(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, nullptr, image.pixels.data(), 0, nullptr) == 0) return {};
  image.width = static_cast<int>(png.width);
  image.height = static_cast<int>(png.height);
  return image;
}

// Means over equal blocks.
Image Small(const Image& image) {
  Image small{kSmallWidth, kSmallHeight, {}};
  const int step_x = image.width / kSmallWidth;
  const int step_y = image.height / kSmallHeight;
  for (int y = 0; y < kSmallHeight; ++y) {
    for (int x = 0; x < kSmallWidth; ++x) {
      for (int channel = 0; channel < 4; ++channel) {
        int sum = 0;
        for (int i = 0; i < step_x * step_y; ++i) {
          sum += image.At(x * step_x + i % step_x, y * step_y + i / step_x)[channel];
        }
        small.pixels.push_back(static_cast<uint8_t>(sum / (step_x * step_y)));
      }
    }
  }
  return small;
}

// Of two small pictures: the share of pixels whose colour is another one.
double Difference(const Image& a, const Image& b) {
  if (a.width != b.width || a.height != b.height) return 1;
  size_t other = 0;
  for (int y = 0; y < a.height; ++y) {
    for (int x = 0; x < a.width; ++x) {
      int most = 0;
      for (int channel = 0; channel < 3; ++channel) {
        most = std::max(most, std::abs(a.At(x, y)[channel] - b.At(x, y)[channel]));
      }
      other += most > kSameColour ? 1 : 0;
    }
  }
  return static_cast<double>(other) / (a.width * a.height);
}

// The least share of a part's pixels that its commonest colour leaves: 0 is an empty pane.
double Detail(const Image& image, double left, double top, double right, double bottom) {
  std::map<uint32_t, size_t> count;
  size_t all = 0;
  size_t commonest = 0;
  for (int y = static_cast<int>(top * image.height); y < static_cast<int>(bottom * image.height);
       ++y) {
    for (int x = static_cast<int>(left * image.width); x < static_cast<int>(right * image.width);
         ++x) {
      const uint8_t* p = image.At(x, y);
      const uint32_t colour = (p[0] << 16U) | (p[1] << 8U) | p[2];
      commonest = std::max(commonest, ++count[colour]);
      ++all;
    }
  }
  return 1 - static_cast<double>(commonest) / static_cast<double>(all);
}

fs::path Expected(const std::string& name) {
  return fs::path(TRAINPROF_SOURCE_DIR) / "tests/viewer/pictures/expected" / (name + ".png");
}

constexpr int kWidth = 1280;
constexpr int kHeight = 720;

class Pictures : public ::testing::TestWithParam<testing::Scene> {
 protected:
  void Take(const fs::path& job, ThemeName theme) {
    const std::string name =
        fmt::format("{}-{}-{}x{}", GetParam().name, theme == ThemeName::kLight ? "light" : "dark",
                    kWidth, kHeight);
    const fs::path file = fs::path(TEST_PICTURES) / (name + ".png");
    fs::create_directories(file.parent_path());
    Settings settings;
    settings.theme = theme;
    settings.scale = 1;
    Goal goal;
    if (GetParam().step >= 0) goal.step = GetParam().step;
    if (GetParam().finding > 0) goal.finding = GetParam().finding;
    App app(settings, goal);
    Open(app.state(), job);
    const auto taken = TakeScreenshot(app, {.file = file, .width = kWidth, .height = kHeight});
    ASSERT_TRUE(taken.ok()) << taken.error();
    Compare(name, ReadPng(file));
  }

  static void Compare(const std::string& name, const Image& image) {
    ASSERT_GT(image.width, 0) << name;
    EXPECT_GT(Detail(image, 0, 0, 1, 1), 0.2) << name << ": nothing in the picture";
    const Image small = Small(image);
    if (getenv("TRAINPROF_WRITE_PICTURES") != nullptr) {
      const auto written = WritePng(Expected(name), kSmallWidth, kSmallHeight, small.pixels);
      ASSERT_TRUE(written.ok()) << written.error();
    }
    const Image expected = ReadPng(Expected(name));
    ASSERT_GT(expected.width, 0) << name << ": no picture to compare with";
    EXPECT_LE(Difference(small, expected), kMostOtherShare)
        << name << " differs: look at it in " << TEST_PICTURES;
  }

  testing::ScratchFolder folder_;
};

TEST_P(Pictures, LookAsTheyDid) {
  const fs::path job = GetParam().make(folder_.path());
  for (const ThemeName theme : {ThemeName::kDark, ThemeName::kLight}) Take(job, theme);
}

INSTANTIATE_TEST_SUITE_P(All, Pictures,
                         ::testing::ValuesIn(testing::Scenes().begin(), testing::Scenes().end()),
                         [](const auto& scene) { return std::string(scene.param.name); });

// The comparison itself: another theme is another picture.
TEST(PictureComparison, TellsThemesApart) {
  const Image dark = ReadPng(Expected("demo-dark-1280x720"));
  const Image light = ReadPng(Expected("demo-light-1280x720"));
  EXPECT_EQ(Difference(dark, dark), 0);
  EXPECT_GT(Difference(dark, light), 0.5);
}

}  // namespace
}  // namespace trainprof
