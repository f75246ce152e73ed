// Stacks of calls: as they are symbolised, kept beside the segment, and read where the program's
// files are gone.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/support/scratch_folder.h"
#include "tests/support/segment_writer.h"
#include "tests/trace/symbols/symbols_fixture.h"
#include "trace/formats/chrome/stack_text.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/symbols_file.h"
#include "trace/symbols/elf_file.h"

namespace trainprof::testing {
namespace {

namespace fs = std::filesystem;
using namespace recording;

// Where the program mapped the module; the real ones stand in the fixture's own process.
constexpr uint64_t kBase = 0x7f00'0000'0000;
constexpr uint64_t kTorch = 0x7f11'0000'0000;

class CallStacks : public ::testing::Test {
 protected:
  CallStacks() : writer_(scratch_ / "pid-1"), program_(scratch_ / "train") {
    Dl_info info{};
    void* const address = user::TrainStep();
    dladdr(address, &info);
    offset_ = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(info.dli_fbase);
    fs::copy_file(info.dli_fname, program_);
    std::ifstream("/proc/sys/kernel/random/boot_id").read(writer_.header().boot_id, 36);
    writer_.BeginWriter(0, 100, "main");
    writer_.Module(FactsOf(program_, kBase), program_.string());
    writer_.Module({kTorch, kTorch + 0x100000, 0, kTorch, 0, {}}, "/opt/libtorch/lib/libtorch.so");
    writer_.Stack(1, {kTorch + 0x20, kBase + offset_, 0x1234});
    CallRow call{};
    call.begin_ns = SegmentWriter::kOriginNs;
    call.end_ns = call.begin_ns + 10;
    call.correlation = 5;
    call.tid = 100;
    call.name = writer_.String("cudaStreamSynchronize");
    writer_.Row(call);
  }

  static ModuleFacts FactsOf(const fs::path& path, uint64_t base) {
    ModuleFacts facts{base, base + (1 << 20), 0, base, 0, {}};
    std::string error;
    const std::string id = ElfFile::Open(path, &error)->BuildId();
    facts.build_id_bytes = static_cast<uint32_t>(id.size() / 2);
    for (size_t i = 0; i < id.size() / 2; ++i) {
      facts.build_id[i] = static_cast<unsigned char>(std::stoi(id.substr(2 * i, 2), nullptr, 16));
    }
    return facts;
  }

  std::string Read(Trace* out = nullptr) {
    auto ranks = ReadRecording(scratch_.path());
    if (!ranks.ok()) return ranks.error();
    Trace trace = std::move(ranks.value().at(0).trace);
    const StackId stack = trace.api.stack[0];
    std::string text = stack == kNoStack ? "none" : StackSpelled(trace, stack);
    if (out != nullptr) *out = std::move(trace);
    return text;
  }

  // Frames of the fixture, from libdw or from its symbols.
  static bool NamesTheLine(const std::string& text) {
    if (!ReadsDebugInfo()) return text.find("TrainStep") != std::string::npos;
#ifdef __clang__  // which names what stands in an anonymous namespace
    const std::string read_loss = "user::(anonymous namespace)::ReadLoss();";
#else
    const std::string read_loss = "ReadLoss;";
#endif
    return text.find("symbols_fixture.cpp(13): " + read_loss) != std::string::npos &&
           text.find("symbols_fixture.cpp(21): user::TrainStep()") != std::string::npos;
  }

  ScratchFolder scratch_;
  SegmentWriter writer_;
  fs::path program_;
  uint64_t offset_ = 0;
};

TEST_F(CallStacks, AreSymbolisedOnTheSpotWhereTheFilesAreAtHand) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.Finish();
  Trace trace;
  const std::string text = Read(&trace);
  EXPECT_TRUE(NamesTheLine(text)) << text;
  EXPECT_TRUE(text.starts_with("/opt/libtorch/lib/libtorch.so(+0x1f);")) << text;
  EXPECT_TRUE(text.ends_with(";0x1234")) << text;
  EXPECT_EQ(trace.quality.CountOf("stack_not_symbolised"), ReadsDebugInfo() ? 0 : 1);
}

TEST_F(CallStacks, BeginAtTheCudaCall) {
  constexpr uint64_t kCudart = 0x7f22'0000'0000;
  constexpr uint64_t kDriver = 0x7f33'0000'0000;
  writer_.Module({kCudart, kCudart + 0x1000, 0, kCudart, 0, {}}, "/opt/me/libcudart.so.13");
  writer_.Module({kDriver, kDriver + 0x1000, 0, kDriver, 0, {}}, "/opt/me/libdriver_part.so");
  writer_.Stack(2,
                {kDriver + 0x30, kCudart + 0x20, kDriver + 0x30, kCudart + 0x10, kBase + offset_});
  writer_.CallStack(2, 5, CallDomain::kRuntime);
  writer_.Finish();
  const std::string text = Read();
  EXPECT_TRUE(text.starts_with("/opt/me/libcudart.so.13(+0xf);")) << text;
  EXPECT_TRUE(NamesTheLine(text)) << text;
}

// What of the native stack ran Python is told by Python's functions alone; what these had called stays.
TEST_F(CallStacks, OfPythonHaveItsFunctionsInPlaceOfTheInterpreters) {
  constexpr uint64_t kPython = 0x7f22'0000'0000;
  writer_.Module({kPython, kPython + 0x1000, 0, kPython, 0, {}}, "/opt/conda/bin/python3.11");
  writer_.Stack(2, {kTorch + 0x20, kPython + 0x10, kTorch + 0x30, kPython + 0x20, kBase + offset_});
  writer_.CallStack(2, 5, CallDomain::kRuntime,
                    "7 Loss.item /home/me/my train.py\n30 <module> t.py\n");
  writer_.Finish();
  EXPECT_EQ(
      Read(),
      "/opt/libtorch/lib/libtorch.so(+0x1f);/home/me/my train.py(7): Loss.item;t.py(30): <module>");
}

// A call of older recordings has three words; a text may have been lost, and be of anything.
TEST_F(CallStacks, WithoutAnInterpretersStackKeepTheirNativeFrames) {
  constexpr uint64_t kPython = 0x7f22'0000'0000;
  writer_.Module({kPython, kPython + 0x1000, 0, kPython, 0, {}}, "/opt/conda/bin/python3.11");
  writer_.Stack(2, {kTorch + 0x20, kPython + 0x10});
  const std::string native = "/opt/libtorch/lib/libtorch.so(+0x1f);/opt/conda/bin/python3.11(+0xf)";
  const uint64_t call = 5 | static_cast<uint64_t>(CallDomain::kRuntime) << 32;
  writer_.Raw({PackHead(RecordType::kCallStack, 3, 0, 2), 1000, call});
  writer_.Finish();
  EXPECT_EQ(Read(), native);
  writer_.Raw({PackHead(RecordType::kCallStack, 4, 0, 2), 1000, call, 77});
  writer_.Finish();
  EXPECT_EQ(Read(), native);
  writer_.CallStack(2, 5, CallDomain::kRuntime, "no stack at all");
  writer_.Finish();
  EXPECT_EQ(Read(), native);
}

TEST_F(CallStacks, OfNamesSayWhereRangesAreOpened) {
  writer_.NameStack("data_wait", 1);
  writer_.NameStack("data_wait", 1);
  writer_.NameStack("h2d_copy", 0, "7 to_device /home/me/t.py\n");
  writer_.NameStack("lost", 77);
  writer_.NameStack("none", 0);
  writer_.Finish();
  Trace trace;
  EXPECT_EQ(Read(&trace), "none");
  ASSERT_EQ(trace.openings.size(), 2u);
  EXPECT_EQ(trace.Text(trace.openings[0].name), "data_wait");
  const std::string text = StackSpelled(trace, trace.openings[0].stack);
  EXPECT_TRUE(NamesTheLine(text)) << text;
  EXPECT_EQ(trace.Text(trace.openings[1].name), "h2d_copy");
  EXPECT_EQ(StackSpelled(trace, trace.openings[1].stack), "/home/me/t.py(7): to_device");
  EXPECT_EQ(trace.quality.CountOf("lost_stack"), 1);
}

// Whose own stack could not be read.
TEST_F(CallStacks, OfNamesInAnInterpreterAreNoPlace) {
  constexpr uint64_t kPython = 0x7f22'0000'0000;
  writer_.Module({kPython, kPython + 0x1000, 0, kPython, 0, {}}, "/opt/conda/bin/python3.11");
  writer_.Stack(2, {kBase + offset_, kPython + 0x20});
  writer_.NameStack("data_wait", 2);
  writer_.Finish();
  Trace trace;
  Read(&trace);
  EXPECT_TRUE(trace.openings.empty());
}

TEST_F(CallStacks, AreKeptBesideTheSegmentForOtherMachines) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.Finish();
  const auto limit = testing::InAnHour();
  ASSERT_TRUE(SymbolizeRecording(scratch_.path(), limit).ok());
  const std::string before = Read();
  fs::remove(program_);
  EXPECT_EQ(Read(), before);
  EXPECT_TRUE(NamesTheLine(before)) << before;
}

TEST_F(CallStacks, AProgramThatWasBuiltAgainIsNotTrusted) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.Finish();
  std::fstream file(program_, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const size_t note = bytes.find("GNU");
  ASSERT_NE(note, std::string::npos);
  fs::remove(program_);
  bytes[note + 4] = static_cast<char>(bytes[note + 4] + 1);
  std::ofstream(program_, std::ios::binary) << bytes;
  Trace trace;
  const std::string text = Read(&trace);
  EXPECT_EQ(text.find("TrainStep"), std::string::npos);
  EXPECT_NE(text.find(program_.string() + "(+0x"), std::string::npos) << text;
  ASSERT_EQ(trace.quality.CountOf("stack_not_symbolised"), 1);
  EXPECT_NE(trace.quality.items()[0].detail.find("has changed since"), std::string::npos);
}

TEST_F(CallStacks, ADamagedSymbolsFileIsAsNone) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.Finish();
  fs::path symbols = writer_.path();
  symbols.replace_extension(".symbols.json");
  for (const char* text : {"", "{", "[]", "{\"version\":1,\"modules\":[{\"path\":7}]}",
                           "{\"version\":1,\"modules\":[7,{\"frames\":[]}]}", "{\"version\":2}"}) {
    std::ofstream(symbols) << text;
    EXPECT_TRUE(NamesTheLine(Read())) << text;
  }
}

// Nothing is known of the files that another machine's recording names; they may be anything here.
TEST_F(CallStacks, AreNotLookedUpForAnotherMachine) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.header().boot_id[0] = 'x';
  writer_.Finish();
  Trace trace;
  EXPECT_EQ(Read(&trace).find("TrainStep"), std::string::npos);
  EXPECT_EQ(trace.quality.CountOf("stack_not_symbolised"), 1);
  ASSERT_TRUE(SymbolizeRecording(scratch_.path(), testing::InAnHour()).ok());
  fs::path symbols = writer_.path();
  EXPECT_FALSE(fs::exists(symbols.replace_extension(".symbols.json")));
}

TEST_F(CallStacks, APipeInTheModulesPlaceIsNotOpened) {
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.Finish();
  fs::remove(program_);
  ASSERT_EQ(mkfifo(program_.c_str(), 0600), 0);
  Trace trace;
  EXPECT_EQ(Read(&trace).find("TrainStep"), std::string::npos);
  EXPECT_EQ(trace.quality.CountOf("stack_not_symbolised"), 1);
}

TEST_F(CallStacks, OfTheRuntimeWinsOverTheDriversInside) {
  writer_.Stack(2, {0x9999});
  writer_.CallStack(2, 5, CallDomain::kDriver);
  writer_.CallStack(1, 5, CallDomain::kRuntime);
  writer_.CallStack(2, 5, CallDomain::kDriver);
  writer_.Finish();
  EXPECT_NE(Read(), "0x9999");
}

TEST_F(CallStacks, AStackInALostChunkIsCounted) {
  writer_.CallStack(77, 5, CallDomain::kRuntime);
  writer_.Finish();
  Trace trace;
  EXPECT_EQ(Read(&trace), "none");
  EXPECT_EQ(trace.quality.CountOf("lost_stack"), 1);
}

}  // namespace
}  // namespace trainprof::testing
