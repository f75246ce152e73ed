// Dear ImGui with its OpenGL renderer, for the current context: what window and picture share.
#pragma once

#include "viewer/app/app.h"

namespace trainprof {

class Gui {
 public:
  // A context of OpenGL 3.2 is current, and outlives it.
  Gui();
  ~Gui();
  Gui(const Gui&) = delete;
  Gui& operator=(const Gui&) = delete;

  // One frame of the app: its commands are then in ImGui::GetDrawData(). `new_frame` asks the
  // window system for input and display size, after the fonts are right.
  template <class NewFrame>
  void Build(App& app, float display_scale, NewFrame new_frame) {
    PrepareFonts(app, display_scale);
    new_frame();
    ImGui::NewFrame();
    app.Frame();
    ImGui::Render();
  }
  // Clears the frame buffer that is bound, and draws to it.
  void Draw(ImU32 background) const;

 private:
  void PrepareFonts(App& app, float display_scale);
};

}  // namespace trainprof
