#include "trace/symbols/native_frames.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

TEST(NativeFrames, LibrariesOfTorchCudaAndTheSystemAreForeign) {
  for (const char* path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
        "/opt/libtorch/lib/libtorch_cpu.so", "/home/me/libtorch/lib/libc10_cuda.so",
        "/usr/local/cuda-13.0/lib64/libcudart.so.13",
        "/home/me/venv/lib/python3.11/site-packages/numpy/core/_multiarray.so",
        "/home/me/bin/python3.11", "/opt/run/libtrainprof_injection.so", "[vdso]"}) {
    EXPECT_TRUE(IsForeignModule(path)) << path;
  }
}

TEST(NativeFrames, TheUsersProgramsAreNot) {
  for (const char* path : {"/home/me/train", "/work/build/my_model.so", "train", "/opt/me/trainer",
                           "/home/me/cuda_trainer", "/usr/local/bin/train"}) {
    EXPECT_FALSE(IsForeignModule(path)) << path;
  }
}

TEST(NativeFrames, HeadersThatWereInlinedAreForeign) {
  for (const char* file :
       {"/usr/include/c++/12/bits/std_function.h", "/opt/libtorch/include/ATen/core/TensorBody.h",
        "/opt/libtorch/include/torch/csrc/api/include/torch/nn/pimpl.h",
        "../sysdeps/nptl/libc_start_call_main.h"}) {
    EXPECT_TRUE(IsForeignSource(file)) << file;
  }
  for (const char* file : {"/home/me/train.cpp", "train.cpp", "/home/me/include/model.h",
                           "/usr/src/app/train.cpp", "/usr/local/src/model.cpp"}) {
    EXPECT_FALSE(IsForeignSource(file)) << file;
  }
}

TEST(NativeFrames, TheCudaRuntimeIsKnownEvenInsideTheProgram) {
  EXPECT_TRUE(IsCudaModule("/home/me/venv/lib/python3.11/site-packages/nvidia/libcudart.so.13"));
  EXPECT_TRUE(IsCudaModule("/usr/lib/libcuda.so.1"));
  EXPECT_FALSE(IsCudaModule("/home/me/libcuda_helpers.so"));
  EXPECT_TRUE(IsCudaFunction("cudaMemcpyAsync"));
  EXPECT_TRUE(IsCudaFunction("__cudart1234"));
  EXPECT_FALSE(IsCudaFunction("cuda_train"));
  EXPECT_FALSE(IsCudaFunction("cuda"));
}

}  // namespace
}  // namespace trainprof
