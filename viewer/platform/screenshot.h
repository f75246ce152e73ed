// The window's content as a picture, without a window.
#pragma once

#include <filesystem>

#include "trace/result.h"
#include "viewer/app/app.h"

namespace trainprof {

struct ScreenshotOptions {
  std::filesystem::path file;
  int width = 1600;  // in pixels
  int height = 900;
};

// Waits until the app's document is loaded and its goal reached, and until the picture stands
// still. The error says when a file could not be read or a goal not be shown; nothing is written
// then.
Result<void> TakeScreenshot(App& app, const ScreenshotOptions& options);

}  // namespace trainprof
