#include "tests/collectors/handed_over.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>

#include "tests/collectors/recorded_run.h"

namespace trainprof::testing {
namespace {

using Numbers = std::vector<std::set<long>>;  // by thread

Numbers NumbersOf(const Trace& trace) {
  Numbers numbers(HandedOver::kThreads);
  for (const std::string& name : RangeNames(trace)) {
    const size_t colon = name.find(':');
    EXPECT_NE(colon, std::string::npos) << name;
    const bool is_new =
        numbers.at(std::stoul(name)).insert(std::stol(name.substr(colon + 1))).second;
    EXPECT_TRUE(is_new) << name;
  }
  return numbers;
}

}  // namespace

SharedCounts::SharedCounts(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
  EXPECT_EQ(ftruncate(fd, sizeof(HandedOver)), 0);
  counts_ = static_cast<HandedOver*>(
      mmap(nullptr, sizeof(HandedOver), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  close(fd);
}

SharedCounts::~SharedCounts() { munmap(counts_, sizeof(HandedOver)); }

void AwaitFirst(const HandedOver& handed) {
  for (const HandedOver::PerThread& thread : handed.thread) {
    for (int i = 0; i < 20'000 && thread.pushed == 0; ++i) usleep(500);
  }
}

void ExpectNothingLost(const Trace& trace, const HandedOver& handed) {
  const Numbers numbers = NumbersOf(trace);
  long open = 0;
  for (int t = 0; t < HandedOver::kThreads; ++t) {
    const auto recorded = static_cast<long>(numbers[t].size());
    EXPECT_GE(recorded, handed.thread[t].pushed);
    EXPECT_LE(recorded, handed.thread[t].pushed + 1);
    if (recorded > 0) {
      EXPECT_EQ(*numbers[t].rbegin(), recorded - 1) << "numbers without a hole";
    }
    open += recorded - handed.thread[t].popped;
  }
  // Those whose pop was not handed over are open, less the pops that were written meanwhile.
  EXPECT_LE(trace.quality.CountOf("open_range_at_end"), open);
  EXPECT_EQ(trace.quality.CountOf("corrupt_chunk"), 0);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 0);
}

void ExpectNoHoles(const Trace& trace) {
  for (const std::set<long>& numbers : NumbersOf(trace)) {
    if (numbers.empty()) continue;
    EXPECT_EQ(*numbers.rbegin(), static_cast<long>(numbers.size()) - 1);
  }
  EXPECT_EQ(trace.quality.CountOf("corrupt_chunk"), 0);
  EXPECT_EQ(trace.quality.CountOf("lost_chunk"), 0);
  EXPECT_EQ(trace.quality.CountOf("unmatched_pop"), 0);
}

}  // namespace trainprof::testing
