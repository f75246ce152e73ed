// What the names of kernels say. Header-only and free of allocation.
#pragma once

#include <string_view>

namespace trainprof {

// What a kernel's function is called, without its return type, namespaces, template's and own
// arguments: of "void vllm::cross_device_reduce_1stage<__half, 2>(...)" "cross_device_reduce_1stage".
constexpr std::string_view FunctionOf(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t at = kernel.find(kUnnamed); at != kernel.npos; at = kernel.find(kUnnamed)) {
    if (at > kernel.find('<')) break;
    kernel.remove_prefix(at + kUnnamed.size());
  }
  kernel = kernel.substr(0, kernel.find_first_of("<("));
  const size_t scope = kernel.rfind("::");
  return scope == kernel.npos ? kernel : kernel.substr(scope + 2);
}

}  // namespace trainprof
