// A hand over one pane of an open job: clicks on words, writes texts.
#pragma once

#include <gtest/gtest.h>

#include "tests/viewer/open_job.h"
#include "tests/viewer/text_finder.h"
#include "tests/viewer/ui_driver.h"
#include "viewer/panes/cache.h"
#include "viewer/panes/panes.h"

namespace trainprof::testing {

class PaneHand {
 public:
  using Pane = void (*)(PaneContext&);

  PaneHand(State& state, Pane pane, ImVec2 size = {700, 500}, ThemeName theme = ThemeName::kDark,
           float scale = 1)
      : state_(state),
        pane_(pane),
        ui_(
            size, [this](const Theme& t) { Draw(t); }, theme, scale) {
#if IMGUI_VERSION_NUM < 18700
    ImGui::GetIO().KeyMap[ImGuiKey_Enter] = kEnter;
#endif
    ui_.Frames(2);
  }

  UiDriver& ui() { return ui_; }
  InspectorCache& cache() { return cache_.inspector; }

  void Click(std::string_view text, int nth = 0) {
    const std::optional<FoundText> found = FindText(text, nth);
    ASSERT_TRUE(found) << "no \"" << text << "\" on the screen";
    ui_.Click(found->middle());
    ui_.Frames();
  }
  void Write(const std::string& text) {
    ui_.Type(text);
    ui_.Frames();
  }
  void Enter() {
    ui_.Press(kEnter);
    ui_.Frames();
  }
  // Until nothing is made in the background any more.
  void Wait() {
    for (int i = 0; i < 5000 && cache_.inspector.busy(); ++i) ui_.Frames();
    ui_.Frames(2);
  }

 private:
#if IMGUI_VERSION_NUM < 18700
  static constexpr int kEnter = 257;  // GLFW's
#else
  static constexpr int kEnter = ImGuiKey_Enter;
#endif

  void Draw(const Theme& theme) {
    PaneContext context{state_, theme, cache_};
    ImGui::BeginChild("pane", {0, 0}, false, ImGuiWindowFlags_MenuBar);
    pane_(context);
    ImGui::EndChild();
  }

  State& state_;
  const Pane pane_;
  PaneCache cache_;
  UiDriver ui_;
};

inline std::string Clipboard() { return ImGui::GetClipboardText(); }

}  // namespace trainprof::testing
