// docs/virtual_gpu.md says what is there: every setting, fault and function, and an example that
// compiles.
#include <gtest/gtest.h>
#include <stdio.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/virtual_gpu/model/faults.h"
#include "tests/virtual_gpu/model/settings.h"

namespace vgpu::testing {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string Page() { return ReadFile(TRAINPROF_SOURCE_DIR "/docs/virtual_gpu.md"); }

TEST(VirtualGpuDocs, TheExampleIsTheProgramThatIsBuilt) {
  const std::string example =
      ReadFile(TRAINPROF_SOURCE_DIR "/tests/virtual_gpu/scenarios/item_in_loop.cpp");
  EXPECT_NE(Page().find("```cpp\n" + example + "```"), std::string::npos);
}

// "name=default  meaning" is the row "| `name=default` | meaning |".
void ExpectRows(const std::string& page, const std::string& description) {
  std::istringstream lines(description);
  for (std::string line; std::getline(lines, line);) {
    const size_t gap = line.find("  ");
    const std::string row = "| `" + line.substr(0, gap) + "` | " + line.substr(gap + 2) + " |\n";
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(VirtualGpuDocs, SettingsAndFaultsAreListedAsTheyAre) {
  const std::string page = Page();
  ExpectRows(page, DescribeSettings());
  ExpectRows(page, DescribeFaults());
}

TEST(VirtualGpuDocs, EveryFunctionIsListed) {
  const std::string page = Page();
  FILE* pipe =
      popen("cd " TEST_LIBRARIES
            " && nm -D --defined-only libcudart_vgpu.so libcuda.so.1 libcudart.so.13 libcupti.so.13"
            " libnvidia-ml.so.1",
            "r");
  ASSERT_NE(pipe, nullptr);
  char line[1024];
  int functions = 0;
  while (fgets(line, sizeof line, pipe) != nullptr) {
    char kind = 0;
    char name[512] = "";
    if (sscanf(line, "%*x %c %511[^@\n]", &kind, name) != 2 || kind != 'T') continue;
    const std::string symbol = name;
    if (symbol.starts_with("_Z")) continue;  // C++ between the libraries
    ++functions;
    const bool listed = page.find('`' + symbol + '`') != std::string::npos ||
                        page.find('`' + symbol + '(') != std::string::npos;
    EXPECT_TRUE(listed) << symbol;
  }
  pclose(pipe);
  EXPECT_GT(functions, 200);
}

}  // namespace
}  // namespace vgpu::testing
