// Names of functions and kernels as people write them.
#pragma once

#include <string>
#include <string_view>

namespace trainprof {

// "_Z4gemmIfEvPT_" -> "void gemm<float>(float*)". The text itself where it is no mangled name, or
// one whose text would be larger than kMaxDemangledBytes: a few bytes may stand for gigabytes.
std::string Demangled(std::string_view name);
inline constexpr size_t kMaxDemangledBytes = 1 << 20;

// "float at::Tensor::item<float>() const" -> "at::Tensor::item": what a line of text has room for.
std::string ShortFunctionName(std::string_view demangled);

}  // namespace trainprof
