// GLFW: windows with OpenGL 3.2, shown or hidden.
#pragma once

#include <GLFW/glfw3.h>

#include <memory>
#include <string>

#include "trace/base/result.h"
#include "viewer/platform/offscreen.h"

namespace trainprof {

// GLFW and a window of it, whose context is current. One at a time.
class GlfwContext : public GlContext {
 public:
  static Result<std::unique_ptr<GlfwContext>> Make(int width, int height, bool visible);
  ~GlfwContext() override;
  GlfwContext(const GlfwContext&) = delete;
  GlfwContext& operator=(const GlfwContext&) = delete;

  GLFWwindow* window() const { return window_; }

 private:
  explicit GlfwContext(GLFWwindow* window) : window_(window) {}
  GLFWwindow* window_;
};

Result<std::unique_ptr<GlContext>> MakeHiddenWindowContext();

}  // namespace trainprof
