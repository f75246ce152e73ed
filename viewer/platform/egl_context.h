// OpenGL through EGL, with neither a window nor a display.
#pragma once

#include <memory>

#include "trace/base/result.h"
#include "viewer/platform/offscreen.h"

namespace trainprof {

// Mesa's platform without surfaces.
Result<std::unique_ptr<GlContext>> MakeSurfacelessContext();
// The first graphics card that has OpenGL: what NVIDIA's driver offers. Mesa shows its software
// renderer as one more card.
Result<std::unique_ptr<GlContext>> MakeDeviceContext();

}  // namespace trainprof
