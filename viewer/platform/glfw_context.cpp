#include "viewer/platform/glfw_context.h"

#include <fmt/format.h>

#include "viewer/platform/system_library.h"

namespace trainprof {
namespace {

Error LastError(const char* what) {
  const char* description = nullptr;
  glfwGetError(&description);
  return {fmt::format("GLFW: {}: {}", what, description == nullptr ? "failed" : description)};
}

}  // namespace

Result<std::unique_ptr<GlfwContext>> GlfwContext::Make(int width, int height, bool visible) {
  for (const SystemLibrary library : {SystemLibrary::kGlfw, SystemLibrary::kOpenGl}) {
    const auto loaded = LoadSystemLibrary(library);
    if (!loaded.ok()) return Error{"GLFW: " + loaded.error()};
  }
  if (!glfwInit()) return LastError("no display");
  glfwWindowHint(GLFW_CONTEXT_VERSION_MAJOR, 3);
  glfwWindowHint(GLFW_CONTEXT_VERSION_MINOR, 2);
  glfwWindowHint(GLFW_OPENGL_PROFILE, GLFW_OPENGL_CORE_PROFILE);
  glfwWindowHint(GLFW_OPENGL_FORWARD_COMPAT, GLFW_TRUE);
  glfwWindowHint(GLFW_VISIBLE, visible ? GLFW_TRUE : GLFW_FALSE);
  glfwWindowHintString(GLFW_X11_CLASS_NAME, "trainprof");
  GLFWwindow* const window = glfwCreateWindow(width, height, "trainprof", nullptr, nullptr);
  if (window == nullptr) {
    const Error error = LastError("no window with OpenGL 3.2");
    glfwTerminate();
    return error;
  }
  glfwMakeContextCurrent(window);
  return std::unique_ptr<GlfwContext>(new GlfwContext(window));
}

GlfwContext::~GlfwContext() {
  glfwDestroyWindow(window_);
  glfwTerminate();
}

Result<std::unique_ptr<GlContext>> MakeHiddenWindowContext() {
  auto made = GlfwContext::Make(64, 64, false);
  if (!made.ok()) return Error{made.error()};
  return std::unique_ptr<GlContext>(std::move(made).value());
}

}  // namespace trainprof
