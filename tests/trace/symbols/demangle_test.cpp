#include "trace/symbols/demangle.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

TEST(Demangle, ReadsNamesOfKernels) {
  EXPECT_EQ(Demangled("_Z4gemmIfEvPT_"), "void gemm<float>(float*)");
  EXPECT_EQ(
      Demangled("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5"
                "arrayIPcLm3EEEEviT0_T1_"),
      "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
      "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, std::array<char*, "
      "3ul>)");
}

TEST(Demangle, KeepsWhatIsNoMangledName) {
  for (const char* name : {"", "ampere_sgemm_128x64_nn", "_Zbroken", "_Z", "_ZN"}) {
    EXPECT_EQ(Demangled(name), name);
  }
}

// Each level names the one before twice: 24 of them are 250 bytes that stand for 570 MB.
TEST(Demangle, RefusesNamesThatStandForTooMuch) {
  const std::string digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  for (const bool nested : {false, true}) {
    std::string name = nested ? "_Z1fN1a1b1cIiiEE" : "_Z1f1aIiiE";
    for (size_t level = 0; level < 30; ++level) {
      const std::string before = std::string("S") + digits[level + (nested ? 2 : 0)] + "_";
      name += nested ? "NS_I" + before + before + "EE" : "S_I" + before + before + "E";
    }
    EXPECT_EQ(Demangled(name), name);
  }
}

TEST(ShortFunctionName, LeavesOutParametersAndResults) {
  EXPECT_EQ(ShortFunctionName("float at::Tensor::item<float>() const"), "at::Tensor::item");
  EXPECT_EQ(ShortFunctionName("void at::(anonymous namespace)::copy(int)"),
            "void at::(anonymous namespace)::copy");
  EXPECT_EQ(ShortFunctionName("Net::forward(at::Tensor)::{lambda()#1}::operator()() const"),
            "Net::forward");
  EXPECT_EQ(ShortFunctionName("Loop::operator()(int) const"), "Loop::operator()");
  EXPECT_EQ(ShortFunctionName("operator<<(std::ostream&, Loss const&)"), "operator<<");
  EXPECT_EQ(ShortFunctionName("main"), "main");
}

}  // namespace
}  // namespace trainprof
