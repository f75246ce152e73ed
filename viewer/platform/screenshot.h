// The window's content as a picture, without a window.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "trace/base/result.h"
#include "viewer/app/app.h"
#include "viewer/platform/offscreen.h"

namespace trainprof {

struct ScreenshotOptions {
  std::filesystem::path file;
  int width = 1600;  // in pixels
  int height = 900;
  std::optional<Offscreen> opengl{};  // how it is had; none: in the first way that works
};

// Waits until the app's document is loaded and its goal reached, and until the picture stands
// still. The error says when a file could not be read or a goal not be shown. As WritePng wants it.
Result<std::vector<uint8_t>> DrawPicture(App& app, const ScreenshotOptions& options);
// Draws and writes it; nothing is written when it could not be drawn.
Result<void> TakeScreenshot(App& app, const ScreenshotOptions& options);

}  // namespace trainprof
