// The library as a file: it must load into any process and disturb none.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <regex>
#include <set>
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

std::set<std::string> AllMatches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it) {
    found.insert((*it)[1]);
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
  for (const std::string& needed : AllMatches(dynamic, "\\(NEEDED\\).*\\[(.*)\\]")) {
    EXPECT_TRUE(allowed.count(needed)) << needed;
  }
  EXPECT_NE(dynamic.find("NODELETE"), std::string::npos) << "dlclose must not pull it away";
}

TEST_F(Library, ExportsItsEntryPointAlone) {
  const std::string defined = OutputOf("nm -D --defined-only " TEST_LIBRARY);
  EXPECT_EQ(AllMatches(defined, "[0-9a-f]+ [A-Za-z] (\\S+)"),
            std::set<std::string>{"InitializeInjectionNvtx2"});
}

TEST_F(Library, NeedsNoNewGlibc) {
  // 2.18, of 2013: older than any system that runs CUDA 12.
  const std::string undefined = OutputOf("nm -D --undefined-only " TEST_LIBRARY);
  for (const std::string& version : AllMatches(undefined, "@GLIBC_2\\.(\\d+)")) {
    EXPECT_LE(std::stoi(version), 18) << undefined;
  }
}

}  // namespace
}  // namespace trainprof::testing
