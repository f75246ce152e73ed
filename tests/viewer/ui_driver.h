// Drives the interface without a display: an ImGui context without a backend, a hand that moves
// the mouse and presses keys, and counts of what was drawn.
//
//   UiDriver ui({1600, 900}, [&](const Theme& theme) { ... draw the panes ... });
//   ui.Drag({300, 200}, {500, 200});            // a frame for each step of the hand
//   EXPECT_LT(ui.drawn().rects, 20'000);
#pragma once

#include <imgui.h>

#include <functional>
#include <string>

#include "viewer/theme/theme.h"

namespace trainprof {

class UiDriver {
 public:
  using Draw = std::function<void(const Theme&)>;

  // `draw` draws into a window that covers the display.
  UiDriver(ImVec2 size, Draw draw, ThemeName name = ThemeName::kDark, float scale = 1)
      : context_(ImGui::CreateContext()), draw_(std::move(draw)) {
    ImGuiIO& io = Io();
    io.IniFilename = nullptr;
    io.DisplaySize = size;
    io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
    LoadFonts(scale);
    unsigned char* pixels = nullptr;
    int width = 0;
    int height = 0;
    io.Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
    io.Fonts->SetTexID(static_cast<ImTextureID>(0));
    theme_ = ApplyTheme(name, scale);
    MoveTo({-1000, -1000});
    Frames(2);  // a window has its size from the second frame on
  }
  ~UiDriver() { ImGui::DestroyContext(context_); }
  UiDriver(const UiDriver&) = delete;
  UiDriver& operator=(const UiDriver&) = delete;

  const Theme& theme() const { return theme_; }

  void Frames(int count = 1) {
    for (int i = 0; i < count; ++i) Frame();
  }

  // The hand. Each leaves a frame behind, in which it was seen.
  void MoveTo(ImVec2 to) {
    ImGuiIO& io = Io();
#if IMGUI_VERSION_NUM < 18700
    io.MousePos = to;
#else
    io.AddMousePosEvent(to.x, to.y);
#endif
    Frame();
  }
  void Button(bool down, int button = 0) {
    ImGuiIO& io = Io();
#if IMGUI_VERSION_NUM < 18700
    io.MouseDown[button] = down;
#else
    io.AddMouseButtonEvent(button, down);
#endif
    Frame();
  }
  void Click(ImVec2 at, int button = 0) {
    MoveTo(at);
    Button(true, button);
    Button(false, button);
    Wait(1);  // so that the next click makes no double-click of this one
  }
  void DoubleClick(ImVec2 at) {
    MoveTo(at);
    for (const bool down : {true, false, true, false}) Button(down);
    Wait(1);
  }
  void Drag(ImVec2 from, ImVec2 to, int button = 0) {
    MoveTo(from);
    Button(true, button);
    constexpr int kSteps = 4;
    for (int i = 1; i <= kSteps; ++i) {
      const float part = static_cast<float>(i) / kSteps;
      MoveTo({from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part});
    }
    Button(false, button);
    Wait(1);
  }
  void Wheel(ImVec2 at, float lines) {
    MoveTo(at);
    ImGuiIO& io = Io();
#if IMGUI_VERSION_NUM < 18700
    io.MouseWheel = lines;
#else
    io.AddMouseWheelEvent(0, lines);
#endif
    Frame();
  }
  // A key by ImGui's number for it: GLFW's before 1.87, ImGuiKey_... from there on.
  void Key(int key, bool down) {
    ImGuiIO& io = Io();
#if IMGUI_VERSION_NUM < 18700
    io.KeysDown[key] = down;
#else
    io.AddKeyEvent(static_cast<ImGuiKey>(key), down);
#endif
    Frame();
  }
  void Press(int key) {
    Key(key, true);
    Key(key, false);
  }
  void Hold(bool control, bool shift) {
    ImGuiIO& io = Io();
#if IMGUI_VERSION_NUM < 18700
    io.KeyCtrl = control;
    io.KeyShift = shift;
#elif IMGUI_VERSION_NUM < 18900
    io.AddKeyEvent(ImGuiKey_ModCtrl, control);
    io.AddKeyEvent(ImGuiKey_ModShift, shift);
#else
    io.AddKeyEvent(ImGuiMod_Ctrl, control);
    io.AddKeyEvent(ImGuiMod_Shift, shift);
#endif
    Frame();
  }
  void Type(const std::string& text) {
    Io().AddInputCharactersUTF8(text.c_str());
    Frame();
  }
  // The next frame comes so much later.
  void Wait(float seconds) {
    delta_seconds_ = seconds;
    Frame();
    delta_seconds_ = kFrameSeconds;
  }

  // The last frame.
  struct Drawn {
    int vertices = 0;
    int rects = 0;  // a quarter of the vertices: glyphs are rectangles, too
  };
  Drawn drawn() const {
    Io();
    const int vertices = ImGui::GetDrawData()->TotalVtxCount;
    return {vertices, vertices / 4};
  }
  // Whether something was drawn in `color` within a rectangle of pixels.
  bool Shows(ImU32 color, ImVec2 min = {0, 0}, ImVec2 max = {1e9f, 1e9f}) const {
    Io();
    const ImDrawData* data = ImGui::GetDrawData();
    for (int list = 0; list < data->CmdListsCount; ++list) {
      for (const ImDrawVert& v : data->CmdLists[list]->VtxBuffer) {
        const bool inside =
            v.pos.x >= min.x && v.pos.x <= max.x && v.pos.y >= min.y && v.pos.y <= max.y;
        if (v.col == color && inside) return true;
      }
    }
    return false;
  }

 private:
  static constexpr float kFrameSeconds = 1.f / 60;

  // Of this driver, which becomes the current one.
  ImGuiIO& Io() const {
    ImGui::SetCurrentContext(context_);
    return ImGui::GetIO();
  }

  void Frame() {
    ImGuiIO& io = Io();
    io.DeltaTime = delta_seconds_;
    ImGui::NewFrame();
    ImGui::SetNextWindowPos({0, 0});
    ImGui::SetNextWindowSize(io.DisplaySize);
    ImGui::Begin("all", nullptr,
                 ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                     ImGuiWindowFlags_NoScrollWithMouse | ImGuiWindowFlags_NoSavedSettings |
                     ImGuiWindowFlags_NoBringToFrontOnFocus);
    draw_(theme_);
    ImGui::End();
    ImGui::Render();
  }

  ImGuiContext* context_;
  Draw draw_;
  Theme theme_;
  float delta_seconds_ = kFrameSeconds;
};

}  // namespace trainprof
