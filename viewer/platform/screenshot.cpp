#include "viewer/platform/screenshot.h"

#include <chrono>
#include <string_view>
#include <thread>

#include "viewer/platform/gui.h"
#include "viewer/platform/png_file.h"

namespace trainprof {
namespace {

// A window without a size of its own is hidden in its first frame, and what depends on its size
// follows one later.
constexpr int kLeastFrames = 4;
// What is drawn after this long is taken as it is.
constexpr std::chrono::seconds kLongestWait(60);
constexpr float kFrameSeconds = 1.f / 60;

void Hash(uint64_t& hash, const void* data, size_t size) {
  const std::string_view bytes(static_cast<const char*>(data), size);
  hash = hash * 31 + std::hash<std::string_view>{}(bytes);
}

// Of what the frame draws: equal for two frames that look the same.
uint64_t HashOfFrame() {
  const ImDrawData& data = *ImGui::GetDrawData();
  uint64_t hash = 0;
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    Hash(hash, list.VtxBuffer.Data, static_cast<size_t>(list.VtxBuffer.size_in_bytes()));
    Hash(hash, list.IdxBuffer.Data, static_cast<size_t>(list.IdxBuffer.size_in_bytes()));
  }
  return hash;
}

Result<void> WaitForDocument(const State& state) {
  if (!state.document) return {};
  while (!state.document->progress().done) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const LoadProgress progress = state.document->progress();
  if (!progress.error.empty()) return Error{progress.error};
  return {};
}

// Frames until two are alike and nothing is being made for a later one.
void BuildUntilStill(Gui& gui, App& app, const ScreenshotOptions& options) {
  ImGuiIO& io = ImGui::GetIO();
  const auto end = std::chrono::steady_clock::now() + kLongestWait;
  uint64_t last = 0;
  for (int frame = 1; std::chrono::steady_clock::now() < end; ++frame) {
    gui.Build(app, 1, [&] {
      io.DisplaySize = {static_cast<float>(options.width), static_cast<float>(options.height)};
      io.DeltaTime = kFrameSeconds;
    });
    const uint64_t hash = HashOfFrame();
    if (frame >= kLeastFrames && hash == last && app.Idle()) return;
    last = hash;
    if (!app.Idle()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

Result<std::vector<uint8_t>> DrawPicture(App& app, const ScreenshotOptions& options) {
  const auto context = MakeOffscreenContext(options.opengl);
  if (!context.ok()) return Error{context.error()};
  auto canvas = Canvas::Make(options.width, options.height);
  if (!canvas.ok()) return Error{canvas.error()};
  if (auto loaded = WaitForDocument(app.state()); !loaded.ok()) {
    return Error{loaded.error()};
  }
  Gui gui;
  BuildUntilStill(gui, app, options);
  if (!app.goal_error().empty()) return Error{app.goal_error()};
  gui.Draw(app.theme().window);
  return canvas.value()->Pixels();
}

Result<void> TakeScreenshot(App& app, const ScreenshotOptions& options) {
  const auto pixels = DrawPicture(app, options);
  if (!pixels.ok()) return Error{pixels.error()};
  return WritePng(options.file, options.width, options.height, pixels.value());
}

}  // namespace trainprof
