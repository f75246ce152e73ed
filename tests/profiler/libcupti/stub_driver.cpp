// A libcuda.so.1 that CUPTI cannot be initialised with: its tables are missing. It loads the
// injection in cuInit as the real one does. STUB_DRIVER_VERSION is what it says its version is,
// STUB_DRIVER_CUINIT what cuInit returns.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr int kNotFound = 500;  // CUDA_ERROR_NOT_FOUND
constexpr int kVersion = 13000;

int Variable(const char* name, int standard) {
  const char* text = std::getenv(name);
  return text == nullptr ? standard : std::atoi(text);
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  const char* injection = std::getenv("CUDA_INJECTION64_PATH");
  if (injection != nullptr && *injection != '\0') {
    void* library = dlopen(injection, RTLD_NOW);
    void* begin = library == nullptr ? nullptr : dlsym(library, "InitializeInjection");
    if (begin != nullptr) reinterpret_cast<int (*)()>(begin)();
  }
  return Variable("STUB_DRIVER_CUINIT", 0);
}

int cuDriverGetVersion(int* version) {
  *version = Variable("STUB_DRIVER_VERSION", kVersion);
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 0;
  return 0;
}

int cuGetErrorName(int error, const char** name) {
  if (error != 100) return 1;
  *name = "CUDA_ERROR_NO_DEVICE";
  return 0;
}

int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

int cuGetProcAddress(const char*, void** function, int, uint64_t) {
  *function = nullptr;
  return kNotFound;
}

int cuGetProcAddress_v2(const char*, void** function, int, uint64_t, void*) {
  *function = nullptr;
  return kNotFound;
}
}
