// OpenGL without a window: a context that needs no display (EGL), else one of a hidden window; and
// a picture of our own to draw to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/base/result.h"

namespace trainprof {

// Current on the thread that made it, for as long as it lives.
class GlContext {
 public:
  virtual ~GlContext() = default;
};

enum class Offscreen : uint8_t { kSurfaceless, kDevice, kHiddenWindow };

// "surfaceless", "device", "window"; nothing for another name.
std::optional<Offscreen> OffscreenNamed(std::string_view name);
// Their names, for whoever wrote another one.
std::string OffscreenNames();

// OpenGL 3.2 core: in one way, or in the first that works, which all give the same picture. The
// error names what each way of getting it said.
Result<std::unique_ptr<GlContext>> MakeOffscreenContext(std::optional<Offscreen> way = {});

// A frame buffer of that many pixels, bound for drawing. With a context current; 1 <= width,
// height.
class Canvas {
 public:
  static Result<std::unique_ptr<Canvas>> Make(int width, int height);
  ~Canvas();
  Canvas(const Canvas&) = delete;
  Canvas& operator=(const Canvas&) = delete;

  // 4 bytes a pixel (red, green, blue, 255), rows from the top.
  std::vector<uint8_t> Pixels() const;

 private:
  Canvas(int width, int height);

  int width_;
  int height_;
  uint32_t frame_buffer_ = 0;
  uint32_t colors_ = 0;
};

}  // namespace trainprof
