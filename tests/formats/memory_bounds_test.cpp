// Hostile sizes: what a file costs in memory is bounded by a limit, not by what it inflates to.
// Each import runs in a child whose memory the kernel limits, so that taking more cannot go unseen.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <fstream>
#include <functional>

#include "tests/support/sanitized.h"
#include "tests/support/trace_text.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Feeds text into a gzip file, without ever holding it in one piece.
class GzipFile {
 public:
  explicit GzipFile(const std::string& path) : file_(gzopen(path.c_str(), "wb1")) {}
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;
  ~GzipFile() { gzclose(file_); }
  void Add(std::string_view text, int times = 1) {
    for (int i = 0; i < times; ++i) {
      ASSERT_EQ(gzwrite(file_, text.data(), static_cast<unsigned>(text.size())),
                static_cast<int>(text.size()));
    }
  }

 private:
  gzFile file_;
};

uint64_t DataBytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmData:")) return std::strtoull(line.c_str() + 7, nullptr, 10) * 1024;
  }
  return 0;
}

// Imports in a child that may take `allowed` bytes more than it has, and returns what `describe`
// says of the result; "died of ..." where the child did.
std::string ImportWithin(uint64_t allowed, const std::string& path, const ImportOptions& options,
                         const std::function<std::string(const Result<Trace>&)>& describe) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  malloc_trim(0);
  const pid_t child = fork();
  if (child == 0) {
    const uint64_t most = DataBytes() + allowed;  // asked once: a second answer may be smaller
    const rlimit limit{.rlim_cur = most, .rlim_max = most};
    if (!testing::kIsSanitized && setrlimit(RLIMIT_DATA, &limit) != 0) _exit(3);
    alarm(600);  // a hang is a failure, also on a slow machine under sanitizers
    const std::string text = describe(ImportTrace(path, options));
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 3);
  }
  close(ends[1]);
  std::string text(4096, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : fmt::format("died of status {:#x}", status);
}

std::string ErrorOf(const Result<Trace>& trace) {
  return trace.ok() ? fmt::format("{} ranges", trace.value().ranges.size()) : trace.error();
}

std::function<std::string(const Result<Trace>&)> CountOf(const char* kind) {
  return [kind](const Result<Trace>& trace) {
    return trace.ok() ? fmt::format("{} {}, {} ranges", kind, trace.value().quality.CountOf(kind),
                                    trace.value().ranges.size())
                      : trace.error();
  };
}

constexpr std::string_view kEvent = R"({"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":1})";

TEST(MemoryBounds, AGigabyteOfSpacesCostsNothing) {
  if (testing::kIsSanitized) GTEST_SKIP() << "all it asks is of memory, which has no limit here";
  const TemporaryFile file("bomb.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("{\"traceEvents\": [");
    gzip.Add(std::string(kMiB, ' '), 1024);
    gzip.Add(kEvent);
    gzip.Add("]}");
  }
  EXPECT_EQ(ImportWithin(64 * kMiB, file.path(), {}, ErrorOf), "1 ranges");
}

// The first part of a file promises rows that never come; those that do are of another kind.
TEST(MemoryBounds, AGuessOfWhatComesTakesNothingFromWhatDoes) {
  constexpr int kEach = 300'000;
  const std::string kernel =
      ",{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"k\",\"pid\":0,\"tid\":7,\"ts\":9,\"dur\":1,\"args\":{"
      "\"stream\":7,\"device\":0}}";
  std::string text = "[" + std::string(kEvent);
  for (int i = 0; i < kEach; ++i) text += "," + std::string(kEvent) + std::string(40, ' ');
  for (int i = 0; i < kEach; ++i) text += kernel;
  const TemporaryFile file("halves.json", text + "]");
  ImportOptions options;
  options.max_memory_bytes = 100 * kMiB;
  const auto rows = [](const Result<Trace>& trace) {
    return trace.ok() ? fmt::format("{} and {}", trace.value().ranges.size(),
                                    trace.value().device_ops.size())
                      : trace.error();
  };
  EXPECT_EQ(ImportWithin(120 * kMiB, file.path(), options, rows), "300001 and 300000");
}

TEST(MemoryBounds, ATextOfAHundredMegabytesIsDroppedAndCounted) {
  const std::string text(100 * kMiB, 'x');
  const TemporaryFile argument("a.json.gz");
  {
    GzipFile gzip(argument.path());
    gzip.Add("[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"args\":{\"a\":\"");
    gzip.Add(text);
    gzip.Add("\"}},");
    gzip.Add(kEvent);
    gzip.Add("]");
  }
  EXPECT_EQ(ImportWithin(400 * kMiB, argument.path(), {}, CountOf("oversized_event")),
            "oversized_event 1, 1 ranges");
  const TemporaryFile member("b.json.gz");
  {
    GzipFile gzip(member.path());
    gzip.Add("{\"a\": \"");
    gzip.Add(text);
    gzip.Add("\", \"traceEvents\": [");
    gzip.Add(kEvent);
    gzip.Add("]}");
  }
  EXPECT_EQ(ImportWithin(400 * kMiB, member.path(), {}, CountOf("oversized_member")),
            "oversized_member 1, 1 ranges");
}

TEST(MemoryBounds, AMemberWithAHugeNameIsNotRepeatedInTheError) {
  const TemporaryFile file("name.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("{\"");
    gzip.Add(std::string(20 * kMiB, 'n'));
    gzip.Add("\": 1}");
  }
  EXPECT_LT(ImportWithin(400 * kMiB, file.path(), {}, ErrorOf).size(), 600u);
}

// A thousand members of a megabyte: each is within bounds, together they are not.
TEST(MemoryBounds, MembersAreBoundedTogether) {
  if (testing::kIsSanitized) GTEST_SKIP() << "all it asks is of memory, which has no limit here";
  const TemporaryFile file("members.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("{");
    const std::string value = "\"" + std::string(kMiB, 'v') + "\",";
    for (int i = 0; i < 1000; ++i) gzip.Add(fmt::format("\"m{}\":{}", i, value));
    gzip.Add("\"traceEvents\": [");
    gzip.Add(kEvent);
    gzip.Add("]}");
  }
  EXPECT_EQ(ImportWithin(500 * kMiB, file.path(), {}, CountOf("oversized_member")),
            "oversized_member 937, 1 ranges");
}

// 60 KB on disk, 12 million events: the limit ends it with an error, in the caller's own words.
TEST(MemoryBounds, EventsBeyondTheLimitAreAnErrorThatSaysSo) {
  const TemporaryFile file("bomb.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("[");
    std::string block;
    for (int i = 0; i < 20'000; ++i) block += fmt::format("{},", kEvent);
    gzip.Add(block, 300);
    gzip.Add("{}]");
  }
  ImportOptions options;
  options.max_memory_bytes = 100 * kMiB;
  const std::string error = ImportWithin(400 * kMiB, file.path(), options, ErrorOf);
  EXPECT_NE(error.find("larger than the 100 MiB of memory"), std::string::npos) << error;
  EXPECT_NE(error.find("byte "), std::string::npos) << error;
  if (testing::kIsSanitized) return;
  // Without a limit of its own the import keeps to the process's, which it may meet before it has counted so far.
  const std::string by_default = ImportWithin(100 * kMiB, file.path(), {}, ErrorOf);
  EXPECT_TRUE(by_default.find("of memory") != std::string::npos ||
              by_default.find("does not fit into memory") != std::string::npos)
      << by_default;
}

TEST(MemoryBounds, AMillionTracksAreBounded) {
  if (testing::kIsSanitized) GTEST_SKIP() << "all it asks is of memory, which has no limit here";
  const TemporaryFile file("tracks.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("[");
    for (int i = 0; i < 1'100'000; ++i) {
      gzip.Add(fmt::format(
          R"({{"ph":"X","pid":{},"tid":{},"ts":1,"dur":1}},{{"ph":"M","name":"thread_name","pid":-{},"tid":1,"args":{{"name":"t"}}}},)",
          i, i, i + 1));
    }
    gzip.Add("{}]");
  }
  // 51,424 events are beyond the first 2^20 tracks, and no track is left for a name alone.
  EXPECT_EQ(ImportWithin(1200 * kMiB, file.path(), {}, CountOf("too_many_tracks")),
            "too_many_tracks 1151424, 1100000 ranges");
}

TEST(MemoryBounds, OpenEventsCountToo) {
  const TemporaryFile file("open.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("[");
    std::string block;
    for (int i = 0; i < 20'000; ++i) block += R"({"ph":"B","pid":1,"tid":1,"ts":1},)";
    gzip.Add(block, 100);
    gzip.Add("{}]");
  }
  ImportOptions options;
  options.max_memory_bytes = 200 * kMiB;
  const std::string error = ImportWithin(500 * kMiB, file.path(), options, ErrorOf);
  EXPECT_NE(error.find("larger than the 200 MiB of memory"), std::string::npos) << error;
}

TEST(MemoryBounds, AnEventOfAMillionArgumentsTakesNoSquareOfThat) {
  const TemporaryFile file("arguments.json");
  std::string text = R"([{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"args":{)";
  for (int i = 0; i < 1'000'000; ++i) text += fmt::format("\"k{}\":{},", i, i);
  text += "\"k7\":0}}]";
  std::ofstream(file.path(), std::ios::binary) << text;
  EXPECT_EQ(ImportWithin(600 * kMiB, file.path(), {}, CountOf("duplicate_key")),
            "duplicate_key 1, 1 ranges");
}

TEST(MemoryBounds, DeepNestingNeedsNoStack) {
  const TemporaryFile file("deep.json.gz");
  {
    GzipFile gzip(file.path());
    gzip.Add("{\"a\":");
    gzip.Add(std::string(kMiB, '['), 100);
    gzip.Add(std::string(kMiB, ']'), 100);
    gzip.Add(",\"traceEvents\": [");
    gzip.Add(kEvent);
    gzip.Add("]}");
  }
  const std::string result = ImportWithin(100 * kMiB, file.path(), {}, ErrorOf);
  EXPECT_NE(result.find("without a \"traceEvents\" list"), std::string::npos) << result;
}

}  // namespace
}  // namespace trainprof
