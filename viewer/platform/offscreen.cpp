#include "viewer/platform/offscreen.h"

#define GL_GLEXT_PROTOTYPES
#include <GL/gl.h>
#include <GL/glext.h>
#include <fmt/format.h>

#include <algorithm>

#include "viewer/platform/egl_context.h"
#include "viewer/platform/glfw_context.h"

namespace trainprof {

namespace {

// In the order in which they are tried.
constexpr struct {
  Offscreen way;
  std::string_view name;
  Result<std::unique_ptr<GlContext>> (*make)();
} kWays[] = {
    {Offscreen::kSurfaceless, "surfaceless", MakeSurfacelessContext},
    {Offscreen::kDevice, "device", MakeDeviceContext},
    {Offscreen::kHiddenWindow, "window", MakeHiddenWindowContext},
};

}  // namespace

std::optional<Offscreen> OffscreenNamed(std::string_view name) {
  for (const auto& way : kWays) {
    if (way.name == name) return way.way;
  }
  return std::nullopt;
}

std::string OffscreenNames() {
  std::string names;
  for (const auto& way : kWays) names += (names.empty() ? "" : ", ") + std::string(way.name);
  return names;
}

Result<std::unique_ptr<GlContext>> MakeOffscreenContext(std::optional<Offscreen> wanted) {
  std::string errors;
  for (const auto& way : kWays) {
    if (wanted && way.way != *wanted) continue;
    auto context = way.make();
    if (context.ok()) return context;
    errors += (errors.empty() ? "" : "; ") + context.error();
  }
  return Error{fmt::format(
      "no OpenGL 3.2 to draw with: {}. Install Mesa's software renderer (apt-get install "
      "libegl1 libgl1 libgl1-mesa-dri) or start it where there is a display",
      errors)};
}

Canvas::Canvas(int width, int height) : width_(width), height_(height) {
  glGenFramebuffers(1, &frame_buffer_);
  glGenRenderbuffers(1, &colors_);
  glBindRenderbuffer(GL_RENDERBUFFER, colors_);
  glRenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  glBindFramebuffer(GL_FRAMEBUFFER, frame_buffer_);
  glFramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, colors_);
  glViewport(0, 0, width, height);
}

Canvas::~Canvas() {
  glDeleteFramebuffers(1, &frame_buffer_);
  glDeleteRenderbuffers(1, &colors_);
}

Result<std::unique_ptr<Canvas>> Canvas::Make(int width, int height) {
  GLint most = 0;
  glGetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &most);
  if (width > most || height > most) {
    return Error{fmt::format("a picture of {}x{} is too large for this OpenGL: at most {}x{}",
                             width, height, most, most)};
  }
  std::unique_ptr<Canvas> canvas(new Canvas(width, height));
  if (glCheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
    return Error{fmt::format("OpenGL has no frame buffer of {}x{} pixels", width, height)};
  }
  return canvas;
}

std::vector<uint8_t> Canvas::Pixels() const {
  const size_t row = static_cast<size_t>(width_) * 4;
  std::vector<uint8_t> pixels(row * static_cast<size_t>(height_));
  glPixelStorei(GL_PACK_ALIGNMENT, 1);
  glReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
  // OpenGL's first row is the lowest.
  for (size_t y = 0; y < static_cast<size_t>(height_) / 2; ++y) {
    const auto upper = pixels.begin() + static_cast<ptrdiff_t>(y * row);
    const auto lower = pixels.end() - static_cast<ptrdiff_t>((y + 1) * row);
    std::swap_ranges(upper, upper + static_cast<ptrdiff_t>(row), lower);
  }
  for (size_t i = 3; i < pixels.size(); i += 4) pixels[i] = 255;
  return pixels;
}

}  // namespace trainprof
