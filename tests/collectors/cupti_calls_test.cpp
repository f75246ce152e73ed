// The recorded calls' numbers, compared with NVIDIA's headers. With those of the newest release: profiler.libcupti.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>

#include "collectors/cupti/calls.h"

namespace trainprof::testing {
namespace {

using collectors::Call;
using recording::CallDomain;

// name -> number, of an enum of cupti_runtime_cbid.h or cupti_driver_cbid.h.
std::map<std::string, int> NumbersIn(const std::string& header) {
  std::ifstream file(std::string(TEST_CUDA_INCLUDE) + "/" + header);
  const std::regex pattern("CUPTI_[A-Z]+_TRACE_CBID_(\\w+)\\s*=\\s*(\\d+)");
  std::map<std::string, int> numbers;
  std::smatch match;
  for (std::string line; std::getline(file, line);) {
    if (std::regex_search(line, match, pattern)) numbers[match[1]] = std::stoi(match[2]);
  }
  return numbers;
}

TEST(CuptiCalls, HaveTheNumbersOfTheHeaders) {
  const std::map<std::string, int> runtime = NumbersIn("cupti_runtime_cbid.h");
  const std::map<std::string, int> driver = NumbersIn("cupti_driver_cbid.h");
  uint32_t count = 0;
  const Call* calls = collectors::RecordedCalls(&count);
  int known = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Call& call = calls[i];
    const auto& numbers = call.domain == CallDomain::kRuntime ? runtime : driver;
    const auto found = numbers.find(call.name);
    if (found == numbers.end()) continue;  // newer than these headers
    ++known;
    EXPECT_EQ(found->second, call.cbid) << call.name;
  }
  EXPECT_GT(known, 200);
}

TEST(CuptiCalls, StandOnceEach) {
  uint32_t count = 0;
  const Call* calls = collectors::RecordedCalls(&count);
  std::set<std::pair<CallDomain, uint16_t>> numbers;
  std::set<std::string> names;
  for (uint32_t i = 0; i < count; ++i) {
    EXPECT_TRUE(numbers.insert({calls[i].domain, calls[i].cbid}).second) << calls[i].name;
    EXPECT_TRUE(names.insert(calls[i].name).second) << calls[i].name;
    EXPECT_LT(calls[i].cbid, collectors::kMostCbids);
  }
}

TEST(CuptiCalls, OfOneNameAreRecordedInEveryForm) {
  // Whatever the headers have of what is recorded: another version, another default stream.
  const std::regex form("(_ptsz|_ptds|_v\\d+)+$");
  uint32_t count = 0;
  const Call* calls = collectors::RecordedCalls(&count);
  std::set<std::string> recorded, families;
  for (uint32_t i = 0; i < count; ++i) {
    recorded.insert(calls[i].name);
    families.insert(std::regex_replace(calls[i].name, form, ""));
  }
  for (const char* header : {"cupti_runtime_cbid.h", "cupti_driver_cbid.h"}) {
    const std::map<std::string, int> numbers = NumbersIn(header);
    for (const auto& [name, number] : numbers) {
      const std::string family = std::regex_replace(name, form, "");
      if (families.count(family) == 0 || recorded.count(name) != 0) continue;
      // The driver's first versions, which nothing has called since CUDA 3.2.
      EXPECT_TRUE(numbers.count(name + "_v2") != 0 && number < 100) << name;
    }
  }
}

}  // namespace
}  // namespace trainprof::testing
