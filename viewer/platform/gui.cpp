#include "viewer/platform/gui.h"

#include <GL/gl.h>
#include <backends/imgui_impl_opengl3.h>

namespace trainprof {

Gui::Gui() {
  ImGui::CreateContext();
  ImGui::GetIO().IniFilename = nullptr;  // settings are kept by us
  // A window at rest draws nothing, not even where a text is being written.
  ImGui::GetIO().ConfigInputTextCursorBlink = false;
  ImGui_ImplOpenGL3_Init("#version 150");
}

Gui::~Gui() {
  ImGui_ImplOpenGL3_Shutdown();
  ImGui::DestroyContext();
}

void Gui::PrepareFonts(App& app, float display_scale) {
  if (app.Prepare(display_scale)) {
    // Made with the next frame's other device objects.
    ImGui_ImplOpenGL3_DestroyDeviceObjects();
  }
  ImGui_ImplOpenGL3_NewFrame();
}

void Gui::Draw(ImU32 background) const {
  const ImVec4 color = ImGui::ColorConvertU32ToFloat4(background);
  ImDrawData* const data = ImGui::GetDrawData();
  glViewport(0, 0, static_cast<GLsizei>(data->DisplaySize.x * data->FramebufferScale.x),
             static_cast<GLsizei>(data->DisplaySize.y * data->FramebufferScale.y));
  glClearColor(color.x, color.y, color.z, 1);
  glClear(GL_COLOR_BUFFER_BIT);
  ImGui_ImplOpenGL3_RenderDrawData(data);
}

}  // namespace trainprof
