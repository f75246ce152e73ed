// Whose a native frame is. What stands in a library of the system, of CUDA or of torch is nobody's
// line to change; so is code that one of their headers brought into the user's program.
#pragma once

#include <algorithm>
#include <string_view>

namespace trainprof {

namespace native_internal {

template <size_t N>
constexpr bool StartsWithAny(std::string_view text, const std::string_view (&prefixes)[N]) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

template <size_t N>
constexpr bool ContainsAny(std::string_view text, const std::string_view (&parts)[N]) {
  return std::any_of(std::begin(parts), std::end(parts), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

}  // namespace native_internal

// By the path of a mapped file.
constexpr bool IsForeignModule(std::string_view path) {
  constexpr std::string_view kFolders[] = {
      "/lib/",           "/lib64/",      "/usr/lib/", "/usr/lib32/", "/usr/lib64/",
      "/usr/local/cuda", "/opt/nvidia/", "/opt/rocm", "[",           "linux-vdso"};
  constexpr std::string_view kParts[] = {"/site-packages/", "/dist-packages/", "/lib/python"};
  constexpr std::string_view kNames[] = {
      "libtorch", "libc10",        "libcuda",    "libcudart",  "libcublas", "libcudnn",
      "libcupti", "libcufft",      "libcurand",  "libcuspa",   "libcusol",  "libnccl",
      "libnv",    "libtrainprof_", "libstdc++.", "libc++.",    "libgcc_s",  "libc.so",
      "libc-",    "libm.so",       "libdl.so",   "libpthread", "ld-linux",  "libgomp",
      "libomp",   "libiomp",       "libmkl",     "libpython",  "python"};
  if (native_internal::StartsWithAny(path, kFolders)) return true;
  if (native_internal::ContainsAny(path, kParts)) return true;
  return native_internal::StartsWithAny(path.substr(path.rfind('/') + 1), kNames);
}

// By the path of a mapped file: Python itself, and nothing that it has loaded.
constexpr bool IsPythonModule(std::string_view path) {
  constexpr std::string_view kNames[] = {"libpython", "python"};
  return native_internal::StartsWithAny(path.substr(path.rfind('/') + 1), kNames);
}

// By the path of a mapped file: CUDA's driver, runtime (where it is a library) and CUPTI.
constexpr bool IsCudaModule(std::string_view path) {
  constexpr std::string_view kNames[] = {"libcuda.", "libcudart", "libcupti"};
  return native_internal::StartsWithAny(path.substr(path.rfind('/') + 1), kNames);
}

// By a function without debug information: CUDA's runtime, which nvcc links into the program.
constexpr bool IsCudaFunction(std::string_view name) {
  constexpr std::string_view kPrefixes[] = {"__cudart", "libcudart_static_", "cudart::"};
  constexpr std::string_view kApi = "cuda";
  const bool is_api = name.size() > kApi.size() && name.starts_with(kApi) &&
                      name[kApi.size()] >= 'A' && name[kApi.size()] <= 'Z';
  return is_api || native_internal::StartsWithAny(name, kPrefixes);
}

// By the path of a source file, as debug information has it.
constexpr bool IsForeignSource(std::string_view file) {
  // Not /usr itself: containers keep the user's program in /usr/src/app. Relative paths are those
  // of the system's packages; a program's own are joined with its compiler's folder.
  constexpr std::string_view kRoots[] = {"/usr/include/",   "/usr/lib/", "/usr/local/include/",
                                         "/usr/local/cuda", "../",       "./",
                                         "/opt/nvidia/"};
  constexpr std::string_view kParts[] = {"/include/ATen/", "/include/c10/", "/include/torch/",
                                         "/nvtx3/",        "/include/c++/", "/site-packages/",
                                         "/dist-packages/"};
  return native_internal::StartsWithAny(file, kRoots) || native_internal::ContainsAny(file, kParts);
}

}  // namespace trainprof
