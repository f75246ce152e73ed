// OpenGL through EGL, with neither a window nor a display.
#pragma once

#include <memory>

#include "trace/result.h"
#include "viewer/platform/offscreen.h"

namespace trainprof {

Result<std::unique_ptr<GlContext>> MakeEglContext();

}  // namespace trainprof
