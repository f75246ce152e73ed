#include "viewer/platform/egl_context.h"

#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <fmt/format.h>

#include <array>
#include <string_view>

#include "viewer/platform/system_library.h"

namespace trainprof {
namespace {

class EglContext : public GlContext {
 public:
  EglContext(EGLDisplay display, EGLContext context) : display_(display), context_(context) {}
  ~EglContext() override {
    eglMakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    eglDestroyContext(display_, context_);
    eglTerminate(display_);
  }

 private:
  EGLDisplay display_;
  EGLContext context_;
};

bool Has(const char* extensions, std::string_view name) {
  return extensions != nullptr && std::string_view(extensions).find(name) != std::string_view::npos;
}

// null: EGL is too old to be asked for a platform.
PFNEGLGETPLATFORMDISPLAYEXTPROC GetPlatformDisplay() {
  return reinterpret_cast<PFNEGLGETPLATFORMDISPLAYEXTPROC>(
      eglGetProcAddress("eglGetPlatformDisplayEXT"));
}

bool Offers(std::string_view extension) {
  return Has(eglQueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS), extension) &&
         GetPlatformDisplay() != nullptr;
}

Error Failed(const char* what) {
  return {fmt::format("EGL: {} failed (error {:#x})", what, eglGetError())};
}

Result<std::unique_ptr<GlContext>> MakeContext(EGLDisplay display) {
  if (!eglBindAPI(EGL_OPENGL_API)) return Failed("eglBindAPI(OpenGL)");
  constexpr EGLint kConfig[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                                EGL_OPENGL_BIT, EGL_NONE};
  EGLConfig config = nullptr;
  EGLint configs = 0;
  if (!eglChooseConfig(display, kConfig, &config, 1, &configs) || configs == 0) {
    return Failed("eglChooseConfig");
  }
  constexpr EGLint kContext[] = {EGL_CONTEXT_MAJOR_VERSION,
                                 3,
                                 EGL_CONTEXT_MINOR_VERSION,
                                 2,
                                 EGL_CONTEXT_OPENGL_PROFILE_MASK,
                                 EGL_CONTEXT_OPENGL_CORE_PROFILE_BIT,
                                 EGL_NONE};
  const EGLContext context = eglCreateContext(display, config, EGL_NO_CONTEXT, kContext);
  if (context == EGL_NO_CONTEXT) return Failed("eglCreateContext(3.2 core)");
  if (!eglMakeCurrent(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context)) {
    const Error error = Failed("eglMakeCurrent");
    eglDestroyContext(display, context);
    return error;
  }
  return std::unique_ptr<GlContext>(std::make_unique<EglContext>(display, context));
}

// Of `native`, which is the platform's.
Result<std::unique_ptr<GlContext>> MakeOn(EGLenum platform, void* native) {
  const EGLDisplay display = GetPlatformDisplay()(platform, native, nullptr);
  if (display == EGL_NO_DISPLAY) return Failed("eglGetPlatformDisplay");
  if (!eglInitialize(display, nullptr, nullptr)) return Failed("eglInitialize");
  auto context = MakeContext(display);
  if (!context.ok()) eglTerminate(display);
  return context;
}

// What both ways need.
Result<void> LoadLibraries() {
  for (const SystemLibrary library : {SystemLibrary::kEgl, SystemLibrary::kOpenGl}) {
    const auto loaded = LoadSystemLibrary(library);
    if (!loaded.ok()) return Error{"EGL: " + loaded.error()};
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<GlContext>> MakeSurfacelessContext() {
  if (const auto loaded = LoadLibraries(); !loaded.ok()) return Error{loaded.error()};
  if (!Offers("EGL_MESA_platform_surfaceless")) {
    return Error{"EGL: no platform without surfaces (Mesa has it)"};
  }
  return MakeOn(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY);
}

Result<std::unique_ptr<GlContext>> MakeDeviceContext() {
  if (const auto loaded = LoadLibraries(); !loaded.ok()) return Error{loaded.error()};
  const auto query =
      reinterpret_cast<PFNEGLQUERYDEVICESEXTPROC>(eglGetProcAddress("eglQueryDevicesEXT"));
  std::array<EGLDeviceEXT, 16> devices{};
  EGLint count = 0;
  if (!Offers("EGL_EXT_platform_device") || query == nullptr ||
      !query(static_cast<EGLint>(devices.size()), devices.data(), &count) || count == 0) {
    return Error{"EGL: no device"};
  }
  Result<std::unique_ptr<GlContext>> context = Error{};
  for (EGLint i = 0; i < count && !context.ok(); ++i) {
    context = MakeOn(EGL_PLATFORM_DEVICE_EXT, devices[static_cast<size_t>(i)]);
  }
  return context;
}

}  // namespace trainprof
