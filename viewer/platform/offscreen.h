// OpenGL without a window: a context that needs no display (EGL surfaceless), else one of a hidden
// window; and a picture of our own to draw to.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "trace/result.h"

namespace trainprof {

// Current on the thread that made it, for as long as it lives.
class GlContext {
 public:
  virtual ~GlContext() = default;
};

// OpenGL 3.2 core. The error names what each way of getting one said.
Result<std::unique_ptr<GlContext>> MakeOffscreenContext();

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
