// The library as a file: it must load into any process and disturb none.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>

namespace trainprof::testing {
namespace {

std::string OutputOf(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  std::array<char, 4096> buffer;
  while (size_t n = fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return output;
}

// The text between `before` and `after` of each line that has both.
std::set<std::string> Between(const std::string& text, std::string_view before,
                              std::string_view after) {
  std::set<std::string> found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line += '\n';
    const size_t begin = line.find(before);
    if (begin == std::string::npos) continue;
    const size_t from = begin + before.size();
    const size_t end = line.find(after, from);
    if (end != std::string::npos) found.insert(line.substr(from, end - from));
  }
  return found;
}

class Library : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::string(TEST_SANITIZED) != "")
      GTEST_SKIP() << "sanitizers bring libraries of their own";
  }
};

TEST_F(Library, DependsOnTheCLibraryAlone) {
  const std::string dynamic = OutputOf("readelf -d " TEST_LIBRARY);
  const std::set<std::string> allowed = {"libc.so.6",
                                         "libm.so.6",
                                         "libdl.so.2",
                                         "libpthread.so.0",
                                         "ld-linux-x86-64.so.2",
                                         "ld-linux-aarch64.so.1"};
  for (const std::string& needed : Between(dynamic, "Shared library: [", "]")) {
    EXPECT_TRUE(allowed.count(needed)) << needed;
  }
  EXPECT_NE(dynamic.find("NODELETE"), std::string::npos) << "dlclose must not pull it away";
}

TEST_F(Library, ExportsItsEntryPointsAlone) {
  const std::string defined = OutputOf("nm -D --defined-only " TEST_LIBRARY);
  const std::set<std::string> entries = Between(defined, " T ", "\n");
  EXPECT_EQ(std::count(defined.begin(), defined.end(), '\n'), static_cast<long>(entries.size()))
      << defined;
  EXPECT_EQ(entries.count("InitializeInjectionNvtx2"), 1u);
  for (const std::string& entry : entries) {
    const bool is_ours = entry.rfind("Trainprof", 0) == 0;  // what Python's hooks call
    const bool is_of_a_tool =
        entry.rfind("InitializeInjection", 0) == 0 || entry.rfind("__itt_", 0) == 0;
    EXPECT_TRUE(is_ours || is_of_a_tool) << entry;
  }
}

TEST_F(Library, NeedsNoNewGlibc) {
  // 2.18, of 2013: older than any system that runs CUDA 12.
  const std::string undefined = OutputOf("nm -D --undefined-only " TEST_LIBRARY);
  for (const std::string& version : Between(undefined, "@GLIBC_2.", "\n")) {
    EXPECT_LE(std::stoi(version), 18) << undefined;
  }
}

}  // namespace
}  // namespace trainprof::testing
