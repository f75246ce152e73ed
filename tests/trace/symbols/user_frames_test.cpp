#include "trace/symbols/user_frames.h"

#include <gtest/gtest.h>

namespace trainprof {
namespace {

bool IsUsersPython(std::string_view file, std::string_view function) {
  return IsUserFrame({.function = function, .file = file, .line = 3, .module = {}});
}

bool IsUsersNative(std::string_view module, std::string_view function) {
  return IsUserFrame({.function = function, .file = {}, .module = module, .offset = 9});
}

bool IsUsersText(std::string_view text) {
  return IsUserFrame({.function = text, .file = {}, .module = {}});
}

TEST(UserFrames, InstalledPackagesAreNobodysLineToChange) {
  EXPECT_FALSE(IsUsersPython("/venv/lib/python3.7/site-packages/torch/nn/modules.py", "f"));
  EXPECT_FALSE(IsUsersPython("torch/nn/modules/module.py", "_call_impl"));
  EXPECT_FALSE(IsUsersPython("/usr/include/c++/12/thread", "run"));
  EXPECT_TRUE(IsUsersPython("/home/me/train.py", "main"));
  EXPECT_TRUE(IsUsersPython("/usr/src/app/train.cpp", "main"));
}

TEST(UserFrames, WhatTorchCompileWritesIsNobodysLine) {
  const std::string hash = "ct5jjxzdboxe4xhuhkokg4pgj323k2efxj3eepystsxabcdefgh2";
  EXPECT_FALSE(IsUsersPython("/tmp/torchinductor_me/ct/" + hash + ".py", "call"));
  EXPECT_FALSE(IsUsersPython("/cache/ct/" + hash + ".py", "call")) << "TORCHINDUCTOR_CACHE_DIR";
  EXPECT_FALSE(IsUsersPython("/home/me/.triton/cache/ab12/kernel.py", "launch"));
  EXPECT_TRUE(IsUsersPython("/home/me/" + std::string(52, 'c') + "s.py", "f"));
  EXPECT_TRUE(IsUsersPython("/home/me/compile_train.py", "main"));
}

TEST(UserFrames, TheProfilersOwnStepIsNobodysLine) {
  EXPECT_FALSE(IsUsersPython("train.py", "prof.step"));
  EXPECT_FALSE(IsUsersPython("profiler.py", "step"));
  EXPECT_FALSE(IsUsersPython("utils/my_profiler.py", "__exit__"));
  EXPECT_TRUE(IsUsersPython("train.py", "step"));
  EXPECT_TRUE(IsUsersPython("profiler.py", "measure_loader"));
}

TEST(UserFrames, TheRecordersOwnHooksAreNobodysLine) {
  EXPECT_FALSE(IsUsersPython("/opt/lib/trainprof-python/trainprof/_loader.py", "__next__"));
  EXPECT_TRUE(IsUsersPython("/home/me/trainprof/train.py", "main"));
}

TEST(UserFrames, ANativeFrameIsItsModulesAndNeedsAName) {
  EXPECT_TRUE(IsUsersNative("/home/me/train", "main"));
  EXPECT_FALSE(IsUsersNative("/home/me/train", ""));
  EXPECT_FALSE(IsUsersNative("/home/me/train", "_start"));
  EXPECT_FALSE(IsUsersNative("/opt/libtorch/lib/libtorch_cpu.so", "at::_ops::item::call"));
}

TEST(UserFrames, OfAFrameWithoutAPlaceTheTextTells) {
  EXPECT_FALSE(IsUsersText("<built-in method run_backward of object>"));
  EXPECT_FALSE(IsUsersText("nn.Module: Linear_0"));
  EXPECT_FALSE(IsUsersText("0x7f3012"));
  EXPECT_FALSE(IsUsersText(""));
  EXPECT_TRUE(IsUsersText("load_batch"));
}

}  // namespace
}  // namespace trainprof
