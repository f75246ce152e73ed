// What a whole window may cost, all its panes together, when everything is in sight that can be.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#include "tests/viewer/open_job.h"
#include "viewer/app/app.h"
#include "viewer/state/actions.h"
#include "viewer/timeline/frame.h"

namespace trainprof::testing {
namespace {

// Steps of 100 us that are all different, threads with nested operators and launches, streams with
// kernels between which the GPU is idle.
std::string BusyScript() {
  constexpr int kThreads = 24;
  constexpr int kStreams = 12;
  std::string script;
  for (int t = 1; t <= kThreads; ++t) {
    script += fmt::format("thread {}\n", t);
    if (t == 1) script += "repeat 600 every 100\n  step 0 100 ProfilerStep#1\nend\n";
    script += "repeat 1200 every 50\n";
    script += fmt::format("  op 1 45 aten::an_operator_with_a_name_as_long_as_real_ones_{}\n", t);
    script += "  op 2 20 aten::mm\n  op 25 40 enumerate(DataLoader)#next\n";
    script += fmt::format("  call 3 9 cudaLaunchKernel | corr={}\nend\n", t * 10'000);
  }
  for (int s = 1; s <= kStreams; ++s) {
    script += fmt::format("stream 0 {}\nrepeat 1200 every 50\n", s + 6);
    script += fmt::format("  kernel {} {} {}_kernel_{} | corr={}\nend\n", 10 + s, 20 + 2 * s,
                          s % 3 == 0 ? "nccl" : "gemm", s, s * 10'000);
  }
  return script;
}

// Counters that change all the time, beside one thread.
std::filesystem::path WriteCounters(const std::filesystem::path& folder) {
  constexpr int kCounters = 40;
  constexpr int kValues = 2000;
  const std::filesystem::path path = folder / "counters.json";
  std::ofstream out(path);
  out << R"({"traceEvents":[{"ph":"X","cat":"cpu_op","pid":1,"tid":1,"ts":0,"dur":9,"name":"f"})";
  for (int counter = 0; counter < kCounters; ++counter) {
    for (int i = 0; i < kValues; ++i) {
      out << fmt::format(
          ",\n"
          R"({{"ph":"C","pid":1,"tid":1,"ts":{},"name":"c{}","args":{{"v":{}}}}})",
          10 * i, counter, i * 7919 % 1000);
    }
  }
  out << "]}";
  return path;
}

class Display {
 public:
  Display(App& app, ImVec2 size, float scale) : app_(app), scale_(scale) {
    ImGui::CreateContext();
    ImGuiIO& io = ImGui::GetIO();
    io.IniFilename = nullptr;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    io.DisplaySize = size;
    io.DeltaTime = 0.05f;
  }
  ~Display() { ImGui::DestroyContext(); }

  // Rectangles of the frame, glyphs among them.
  int Frame() {
    if (app_.Prepare(scale_)) {
      unsigned char* pixels = nullptr;
      int width = 0;
      int height = 0;
      ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    }
    ImGui::NewFrame();
    app_.Frame();
    ImGui::Render();
    return ImGui::GetDrawData()->TotalVtxCount / 4;
  }
  void Settle() {
    Frame();
    do {
      Frame();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } while (!app_.Idle());
    Frame();
  }

 private:
  App& app_;
  float scale_;
};

class WindowLimits : public ::testing::TestWithParam<std::pair<ImVec2, float>> {};

TEST_P(WindowLimits, AWindowHoldsSoManyRectanglesWhateverItShows) {
  const auto [size, scale] = GetParam();
  OpenJob job({BusyScript()});
  App app{Settings{}};
  app.state() = std::move(job.state());
  State& state = app.state();
  Display display(app, size, scale);
  display.Frame();
  RunSearch(state, "e");
  ImGui::GetIO().MousePos = {size.x / 2, size.y / 2};
  const Interval extent = state.lines().extent();
  int most = 0;
  int zoom = 0;
  for (double share = 1; share > 1e-4; share *= 0.6, ++zoom) {
    const auto length = static_cast<int64_t>(static_cast<double>(extent.Length().ns) * share);
    state.view = {extent.begin, extent.begin + Duration{length}};
    state.tab = static_cast<Tab>(zoom % static_cast<int>(kTabs));
    state.range.reset();
    if (zoom % 3 == 1) SelectRange(state, state.view);
    if (zoom % 3 == 2) OpenFindingNumber(state, 1);
    display.Settle();
    most = std::max(most, display.Frame());
  }
  EXPECT_LE(most, static_cast<int>(kMostRects));
  EXPECT_GT(most, static_cast<int>(kMostRects) / 4) << "not much was in sight";
  RecordProperty("most_rectangles", most);
}

TEST_P(WindowLimits, CountersShareTheirPart) {
  const auto [size, scale] = GetParam();
  ScratchFolder folder;
  App app{Settings{}};
  Open(app.state(), WriteCounters(folder.path()));
  WaitForAll(app.state());
  Display display(app, size, scale);
  display.Settle();
  ShowAll(app.state());
  display.Settle();
  const int rects = display.Frame();
  EXPECT_LE(rects, static_cast<int>(kMostRects));
  EXPECT_GT(rects, 1000) << "not much was in sight";
}

INSTANTIATE_TEST_SUITE_P(Sizes, WindowLimits,
                         ::testing::Values(std::pair{ImVec2{1280, 720}, 1.f},
                                           std::pair{ImVec2{3840, 2160}, 1.f},
                                           std::pair{ImVec2{3840, 2160}, 2.f}));

}  // namespace
}  // namespace trainprof::testing
