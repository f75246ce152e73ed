#include "viewer/platform/window.h"

#include <backends/imgui_impl_glfw.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trace/io/printable.h"
#include "viewer/app/imgui_compat.h"
#include "viewer/platform/glfw_context.h"
#include "viewer/platform/gui.h"
#include "viewer/platform/settings_file.h"

namespace trainprof {
namespace {

// After a wake-up: ImGui needs a frame to see a change and another to show what follows from it.
constexpr int kFramesAfterEvent = 3;
constexpr double kLoadingSeconds = 0.04;  // progress moves

class Window {
 public:
  Window(App& app, const WindowOptions& options, GLFWwindow* window)
      : app_(app), options_(options), window_(window), saved_(LoadSettings(options.settings_file)) {
    glfwSetWindowUserPointer(window, this);
    glfwSetDropCallback(window, [](GLFWwindow* dropped_on, int count, const char** paths) {
      const std::vector<std::filesystem::path> dropped(paths, paths + count);
      static_cast<Window*>(glfwGetWindowUserPointer(dropped_on))->app_.Drop(dropped);
    });
    glfwSetKeyCallback(window, [](GLFWwindow* of, int key, int, int action, int mods) {
      if (action == GLFW_PRESS)
        static_cast<Window*>(glfwGetWindowUserPointer(of))->Press(key, mods);
    });
    glfwSwapInterval(1);
    ImGui_ImplGlfw_InitForOpenGL(window, true);
  }
  ~Window() { ImGui_ImplGlfw_Shutdown(); }

  void Run() {
    while (!glfwWindowShouldClose(window_) && !app_.state().quit) {
      Wait();
      DrawFrame();
      SetTitle();
      if (app_.Idle()) Save();
    }
    glfwGetWindowSize(window_, &app_.state().settings.window_width,
                      &app_.state().settings.window_height);
    Save();
  }

 private:
  // Sleeps until something happens: a window that stands still draws nothing at all, since without
  // a graphics card, or over a network, each frame is a whole picture.
  void Wait() {
    const bool idle = app_.Idle();
    // What was made last is on screen only when its frames are drawn.
    if (idle && !was_idle_) frames_due_ = kFramesAfterEvent;
    was_idle_ = idle;
    if (frames_due_ > 0) {
      --frames_due_;
      return glfwPollEvents();
    }
    if (idle) {
      glfwWaitEvents();
      frames_due_ = kFramesAfterEvent;
      return;
    }
    const double before = glfwGetTime();
    glfwWaitEventsTimeout(kLoadingSeconds);
    if (glfwGetTime() - before < kLoadingSeconds) frames_due_ = kFramesAfterEvent;
    if (app_.KeyHeld()) frames_due_ = 1;
  }

  void DrawFrame() {
    // Keys that were pressed since the last frame and are up again are down for this one.
    std::erase_if(pressed_, [](int key) { return !TakeKeyFor(key, true); });
    gui_.Build(app_, DisplayScale(), ImGui_ImplGlfw_NewFrame);
    for (const int key : pressed_) TakeKeyFor(key, false);
    if (!pressed_.empty()) frames_due_ = kFramesAfterEvent;
    pressed_.clear();
    gui_.Draw(app_.theme().window);
    glfwSwapBuffers(window_);
  }

  // Pixels a point. Where the window system scales by itself (Wayland, macOS), it is 1.
  float DisplayScale() const {
    float scale = 1;
    int width = 0;
    int pixels = 0;
    glfwGetWindowContentScale(window_, &scale, nullptr);
    glfwGetWindowSize(window_, &width, nullptr);
    glfwGetFramebufferSize(window_, &pixels, nullptr);
    if (width <= 0 || pixels <= 0) return std::max(1.f, scale);
    return std::max(1.f, scale * static_cast<float>(width) / static_cast<float>(pixels));
  }

  void Press(int key, int mods) {
    if (mods & GLFW_MOD_CONTROL) pressed_.push_back(GLFW_KEY_LEFT_CONTROL);
    if (mods & GLFW_MOD_SHIFT) pressed_.push_back(GLFW_KEY_LEFT_SHIFT);
    pressed_.push_back(key);
  }

  void SetTitle() {
    const State& state = app_.state();
    std::string title = "trainprof";
    if (state.document) title = state.document->path().filename().string() + " - trainprof";
    if (title == title_) return;
    glfwSetWindowTitle(window_, OneLine(title).c_str());
    title_ = title;
  }

  // Whether they can be kept is said once.
  void Save() {
    State& state = app_.state();
    if (options_.settings_file.empty() || state.settings == saved_) return;
    saved_ = state.settings;
    const auto written = SaveSettings(options_.settings_file, saved_);
    if (!written.ok() && !save_failed_) state.message = written.error();
    save_failed_ = !written.ok();
  }

  App& app_;
  WindowOptions options_;
  GLFWwindow* window_;
  Gui gui_;
  Settings saved_;
  std::string title_;
  std::vector<int> pressed_;  // keys, since the last frame
  int frames_due_ = kFramesAfterEvent;
  bool was_idle_ = false;
  bool save_failed_ = false;
};

}  // namespace

Result<void> RunWindow(App& app, const WindowOptions& options) {
  const auto context = GlfwContext::Make(options.width, options.height, true);
  if (!context.ok()) {
    return Error{context.error() +
                 ". Without a display: --screenshot view.png makes a picture instead"};
  }
  Window(app, options, context.value()->window()).Run();
  return {};
}

}  // namespace trainprof
