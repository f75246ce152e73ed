// Whole processes: a program that knows nothing, a library injected into it, settings from the
// environment.
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/wait.h>

#include <string>

namespace vgpu::testing {
namespace {

struct Ended {
  int status;
  std::string output;
};

Ended RunShell(const std::string& command) {
  Ended ended = {};
  FILE* pipe = popen(("exec 2>&1; ulimit -c 0; " + command).c_str(), "r");
  char block[4096];
  for (size_t n; (n = fread(block, 1, sizeof block, pipe)) > 0;) ended.output.append(block, n);
  ended.status = pclose(pipe);
  return ended;
}

Ended RunProgram(const std::string& environment, const std::string& arguments) {
  return RunShell(environment + " VGPU_STATE=/dev/null " TEST_PROGRAM " " + arguments);
}

Ended RunInjected(const std::string& environment, const std::string& arguments) {
  return RunProgram(
      "LD_LIBRARY_PATH=" TEST_LIBRARIES " CUDA_INJECTION64_PATH=" TEST_INJECTION " " + environment,
      arguments);
}

TEST(VirtualGpuProcess, TheDriverLoadsTheInjectedLibrary) {
  const Ended ended = RunInjected("", "500");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(ended.output,
            "CUPTI 130001\nsubscribe 0 \nenable 0\nerror 0 kernels 500 copies 1\n"
            "recorded 500 of 216 bytes\n");
}

TEST(VirtualGpuProcess, AnInjectedLibraryThatIsNotThereHarmsNobody) {
  const Ended ended = RunProgram("CUDA_INJECTION64_PATH=/nowhere.so", "5");
  EXPECT_EQ(ended.status, 0);
  EXPECT_NE(ended.output.find("/nowhere.so"), std::string::npos);
  EXPECT_NE(ended.output.find("error 0 kernels 5 copies 1"), std::string::npos);
}

TEST(VirtualGpuProcess, FaultsComeFromTheEnvironment) {
  EXPECT_EQ(RunInjected("VGPU_FAULTS='another_subscriber=Nsight Systems'", "5").output,
            "CUPTI 130001\nsubscribe 39 Nsight Systems\nenable 0\nerror 0 kernels 5 copies 1\n"
            "recorded 5 of 216 bytes\n");
  EXPECT_EQ(RunInjected("VGPU_FAULTS=enable_fails=10,null_name", "5").output,
            "CUPTI 130001\nsubscribe 0 \nenable 27\nerror 0 kernels 5 copies 1\n"
            "recorded 0 of 0 bytes\n");
  EXPECT_EQ(RunProgram("VGPU_FAULTS=no_driver", "5").output, "error 35 kernels 0 copies 0\n");
  EXPECT_EQ(RunProgram("VGPU_FAULTS=no_device", "5").output, "error 100 kernels 0 copies 0\n");
  EXPECT_EQ(RunProgram("VGPU_FAULTS=old_driver", "5").output, "error 35 kernels 0 copies 0\n");
  EXPECT_EQ(RunInjected("VGPU_FAULTS=wrong_libcupti", "5").output,
            "CUPTI 22\nsubscribe 15 \nenable 15\nerror 0 kernels 5 copies 1\n"
            "recorded 0 of 0 bytes\n");
}

TEST(VirtualGpuProcess, OlderCuptiWritesShorterRecords) {
  EXPECT_EQ(RunInjected("VGPU_CUPTI_VERSION=12.8", "5").output,
            "CUPTI 26\nsubscribe 0 \nenable 0\nerror 0 kernels 5 copies 1\n"
            "recorded 5 of 208 bytes\n");
  EXPECT_NE(RunInjected("VGPU_CUPTI_VERSION=twelve", "5").output.find("twelve"), std::string::npos);
}

TEST(VirtualGpuProcess, CrashAtKillsTheProcess) {
  const Ended ended = RunProgram("VGPU_FAULTS=crash_at=20", "500");
  // The shell reports the signal of its child so.
  EXPECT_EQ(ended.status, W_EXITCODE(128 + SIGKILL, 0)) << ended.output;
  EXPECT_EQ(ended.output.find("error"), std::string::npos);
}

TEST(VirtualGpuProcess, AForkedChildCannotUseTheDevice) {
  const Ended ended = RunProgram("", "5 fork");
  EXPECT_EQ(ended.output, "child error 3\nerror 0 kernels 5 copies 1\n");
}

TEST(VirtualGpuProcess, SettingsComeFromTheEnvironment) {
  EXPECT_EQ(RunProgram("VGPU_SETTINGS=memory_mib=0.5", "5").output, "error 2 kernels 0 copies 0\n");
  const Ended help = RunProgram("VGPU_SETTINGS=help", "5");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("h2d_pinned_gbps=22:26  GB/s"), std::string::npos);
  const Ended wrong = RunProgram("VGPU_SETTINGS=devicse=3", "5");
  EXPECT_EQ(wrong.status, W_EXITCODE(2, 0));
  EXPECT_NE(wrong.output.find("\"devicse=3\""), std::string::npos);
}

TEST(VirtualGpuProcess, FaultsAreListed) {
  const Ended help = RunProgram("VGPU_FAULTS=help", "5");
  EXPECT_EQ(help.status, 0);
  EXPECT_NE(help.output.find("another_subscriber=Nsight Systems  a tool"), std::string::npos);
  const Ended wrong = RunProgram("VGPU_FAULTS=no_drivr", "5");
  EXPECT_EQ(wrong.status, W_EXITCODE(2, 0));
  EXPECT_NE(wrong.output.find("\"no_drivr\""), std::string::npos);
}

TEST(VirtualGpuProcess, LibrariesAreNamedAndVersionedAsTheRealOnes) {
  for (const char* line :
       {"libcuda.so.1 cuInit@@libcuda.so.1", "libcudart.so.13 cudaMalloc@@libcudart.so.13",
        "libcupti.so.13 cuptiSubscribe@@libcupti.so.13",
        "cupti_12/libcupti.so.12 cuptiSubscribe@@libcupti.so.12",
        "libnvidia-ml.so.1 nvmlInit_v2"}) {
    const std::string text = line;
    const std::string library = text.substr(0, text.find(' '));
    const std::string symbol = text.substr(text.find(' ') + 1);
    const std::string path = TEST_LIBRARIES "/" + library;
    EXPECT_NE(RunShell("readelf -d " + path)
                  .output.find("soname: [" + library.substr(library.rfind('/') + 1) + "]"),
              std::string::npos);
    EXPECT_NE(RunShell("nm -D --with-symbol-versions " + path).output.find(" " + symbol + "\n"),
              std::string::npos)
        << symbol;
  }
}

}  // namespace
}  // namespace vgpu::testing
