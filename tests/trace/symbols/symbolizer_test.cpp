#include "trace/symbols/symbolizer.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trace/symbols/symbols_fixture.h"
#include "trace/symbols/elf_file.h"

// libdw 0.188 loses 32 bytes where dwarf_getscopes meets damage.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libdw.so\n"; }

namespace trainprof {
namespace {

namespace fs = std::filesystem;

const auto kNoHurry = std::chrono::steady_clock::now() + std::chrono::hours(1);

struct Fixture {
  ModuleSymbols module;
  uint64_t address = 0;
};

// The fixture's call, as a recording would have it.
Fixture CallInFixture() {
  Fixture fixture;
  void* const address = user::TrainStep();
  Dl_info info{};
  EXPECT_NE(dladdr(address, &info), 0);
  fixture.module.path = info.dli_fname;
  fixture.address =
      reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(info.dli_fbase) - 1;
  std::string error;
  const auto file = ElfFile::Open(info.dli_fname, &error);
  EXPECT_TRUE(file.has_value()) << error;
  if (file) fixture.module.build_id = file->BuildId();
  fixture.module.frames[fixture.address];
  return fixture;
}

TEST(Symbolizer, UnfoldsInlinedCallsWithTheirLines) {
  if (!ReadsDebugInfo()) GTEST_SKIP() << "needs libdw";
  Fixture fixture = CallInFixture();
  EXPECT_EQ(fixture.module.build_id.size(), 40u);
  Symbolize(fixture.module, kNoHurry);
  EXPECT_EQ(fixture.module.state, "");
  const SourceFrames& frames = fixture.module.frames[fixture.address];
  ASSERT_EQ(frames.size(), 2u);
  // In an anonymous namespace: GCC gives it no linkage name, Clang does.
  EXPECT_NE(frames[0].function.find("ReadLoss"), std::string::npos) << frames[0].function;
  EXPECT_TRUE(frames[0].file.ends_with("symbols_fixture.cpp")) << frames[0].file;
  EXPECT_TRUE(frames[0].file.starts_with("/")) << frames[0].file;
  EXPECT_EQ(frames[0].line, user::kReadLossLine);
  EXPECT_EQ(frames[1].function, "user::TrainStep()");
  EXPECT_EQ(frames[1].line, user::kTrainStepLine);
}

TEST(Symbolizer, AFileOfAnotherBuildIsNotTrusted) {
  Fixture fixture = CallInFixture();
  fixture.module.build_id[0] = fixture.module.build_id[0] == '0' ? '1' : '0';
  Symbolize(fixture.module, kNoHurry);
  EXPECT_EQ(fixture.module.state, "the file has changed since it was recorded");
  EXPECT_TRUE(fixture.module.frames[fixture.address].empty());
}

TEST(Symbolizer, AFileThatIsGoneIsSaid) {
  Fixture fixture = CallInFixture();
  fixture.module.path += ".gone";
  Symbolize(fixture.module, kNoHurry);
  EXPECT_EQ(fixture.module.state, "the file is not here");
}

TEST(Symbolizer, LibrariesOfTheSystemGiveFunctionsOnly) {
  Dl_info info{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&fopen), &info), 0);
  ModuleSymbols module;
  module.path = fs::canonical(info.dli_fname);
  std::string error;
  module.build_id = ElfFile::Open(module.path, &error)->BuildId();
  const uint64_t inside =
      reinterpret_cast<uintptr_t>(info.dli_saddr) - reinterpret_cast<uintptr_t>(info.dli_fbase) + 1;
  module.frames[inside];
  Symbolize(module, kNoHurry);
  ASSERT_EQ(module.frames[inside].size(), 1u);
  EXPECT_NE(module.frames[inside][0].function.find("fopen"), std::string::npos)
      << module.frames[inside][0].function;
  EXPECT_EQ(module.frames[inside][0].file, "");
}

TEST(Symbolizer, NothingIsReadBehindTheDeadline) {
  Fixture fixture = CallInFixture();
  Symbolize(fixture.module, std::chrono::steady_clock::now());
  EXPECT_TRUE(fixture.module.frames[fixture.address].empty());
}

TEST(Symbolizer, DamagedFilesAreSurvived) {
  const Fixture fixture = CallInFixture();
  std::ifstream in(fixture.module.path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  const fs::path path = fs::path(::testing::TempDir()) / "damaged_symbols.so";
  uint64_t state = 1;
  const auto random = [&] { return state = state * 6364136223846793005u + 1442695040888963407u; };
  for (int i = 0; i < 200; ++i) {
    std::string bytes = whole;
    for (int flips = 0; flips < 20; ++flips) {
      const size_t at = flips < 10 ? (random() >> 33) % 4096 : (random() >> 33) % bytes.size();
      bytes[at] = static_cast<char>(random() >> 56);
    }
    if (i % 4 == 0) bytes.resize((random() >> 33) % bytes.size());
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    ModuleSymbols module = fixture.module;
    module.path = path;
    std::string error;
    const auto file = ElfFile::Open(path, &error);
    if (file) module.build_id = file->BuildId();
    Symbolize(module, kNoHurry);
  }
  fs::remove(path);
}

TEST(Symbolizer, OnlyRegularFilesAreOpened) {
  for (const char* path : {"/dev/zero", "/", "/dev/null"}) {
    ModuleSymbols module;
    module.path = path;
    module.frames[1];
    Symbolize(module, kNoHurry);
    EXPECT_EQ(module.state, "not a file") << path;
  }
}

}  // namespace
}  // namespace trainprof
