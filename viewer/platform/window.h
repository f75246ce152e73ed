// The viewer's window.
#pragma once

#include <filesystem>

#include "trace/base/result.h"
#include "viewer/app/app.h"

namespace trainprof {

struct WindowOptions {
  int width = 1600;  // in the display's units
  int height = 900;
  std::filesystem::path settings_file;  // kept up to date; empty: not
};

// Returns when its user closes it. The error says why there is no window.
Result<void> RunWindow(App& app, const WindowOptions& options);

}  // namespace trainprof
