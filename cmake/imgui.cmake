# Finds Dear ImGui (target trainprof_imgui: the library alone, without a backend) for the timeline's
# panes, and GLFW, OpenGL, EGL and libpng (target trainprof_window) for its window and pictures.
# Sets TRAINPROF_VIEWER. Debian 12 has ImGui 1.86; newer ones do as well.
include_guard(GLOBAL)

set(TRAINPROF_VIEWER OFF)
set(_packages libimgui-dev libstb-dev libfreetype-dev libglfw3-dev libgl-dev libegl-dev libpng-dev fonts-dejavu-core)
pkg_check_modules(IMGUI QUIET IMPORTED_TARGET imgui freetype2)
# Of GLFW, OpenGL and EGL only headers: they are loaded at run time (viewer/platform/system_library.h).
pkg_check_modules(TRAINPROF_WINDOW QUIET glfw3 gl egl)
pkg_check_modules(TRAINPROF_PNG QUIET IMPORTED_TARGET libpng)
trainprof_static(PkgConfig::IMGUI)
trainprof_static(PkgConfig::TRAINPROF_PNG)
find_file(TRAINPROF_FONT DejaVuSans.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/TTF
          /usr/share/fonts/dejavu-sans-fonts DOC "TrueType font that the viewer shows text with")
find_file(TRAINPROF_BOLD_FONT DejaVuSans-Bold.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/TTF
          /usr/share/fonts/dejavu-sans-fonts DOC "TrueType font of the viewer's headings")
find_file(TRAINPROF_MONO_FONT DejaVuSansMono.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/TTF
          /usr/share/fonts/dejavu-sans-mono-fonts DOC "TrueType font of the viewer's code and figures")
if(IMGUI_FOUND AND TRAINPROF_WINDOW_FOUND AND TRAINPROF_PNG_FOUND AND TRAINPROF_FONT AND TRAINPROF_BOLD_FONT AND TRAINPROF_MONO_FONT)
  set(TRAINPROF_VIEWER ON)
  add_library(trainprof_imgui INTERFACE)
  target_link_libraries(trainprof_imgui INTERFACE PkgConfig::IMGUI)
  add_library(trainprof_window INTERFACE)
  target_link_libraries(trainprof_window INTERFACE trainprof_imgui PkgConfig::TRAINPROF_PNG ${CMAKE_DL_LIBS})
  target_include_directories(trainprof_window SYSTEM INTERFACE ${TRAINPROF_WINDOW_INCLUDE_DIRS})
else()
  list(JOIN _packages " " _packages)
  trainprof_absent("Dear ImGui, GLFW, OpenGL, EGL, libpng or the DejaVu fonts (the timeline's window)"
                   "Install them: apt-get install ${_packages}")
endif()
