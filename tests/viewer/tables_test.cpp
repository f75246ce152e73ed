#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "analysis/kernel_title.h"
#include "analysis/tables/histogram.h"
#include "analysis/tables/name_table.h"
#include "analysis/tables/site_table.h"
#include "tests/support/random_trace.h"
#include "tests/support/trace_script.h"
#include "trace/base/cancel.h"
#include "trace/build/trace_builder.h"

namespace trainprof {
namespace {

IntervalSet Whole() { return IntervalSet::Union({{{INT64_MIN / 4}, {INT64_MAX / 4}}}); }

constexpr int64_t kUs = 1000;

const NameRow* RowOf(const Trace& trace, const NameTable& table, std::string_view name) {
  for (const NameRow& row : table.rows) {
    if (trace.Text(row.name) == name) return &row;
  }
  return nullptr;
}

struct TwinRow {
  std::vector<int64_t> parts;
  int64_t self = 0;
  int64_t longest = -1;
  uint32_t longest_row = 0;
};

// The nanoseconds of an event that are inside, one interval after the other; -1: outside.
int64_t PartOf(const Interval& event, const IntervalSet& window) {
  int64_t part = -1;
  for (const Interval& w : window.intervals()) {
    const int64_t begin = std::max(event.begin.ns, w.begin.ns);
    const int64_t end = std::min(event.end.ns, w.end.ns);
    if (end > begin) part = std::max<int64_t>(part, 0) + end - begin;
    if (event.Empty() && w.begin <= event.begin && event.begin < w.end) part = 0;
  }
  return part;
}

bool Counts(const Trace& trace, NamedEvents what, uint32_t row) {
  const RangeKind kind = trace.ranges.kind[row];
  if (what == NamedEvents::kPython) return kind == RangeKind::kPythonFunction;
  const std::set<RangeKind> left_out = {RangeKind::kPythonFunction, RangeKind::kOverhead,
                                        RangeKind::kGpuAnnotation};
  return what != NamedEvents::kOperators || !left_out.contains(kind);
}

// Names by text, all durations kept, parents' time charged one by one.
std::map<std::string, TwinRow> TableTwin(const Trace& trace, NamedEvents what,
                                         const IntervalSet& window) {
  std::map<std::string, TwinRow> rows;
  const EventColumns& columns = *ColumnsOf(trace, TableOf(what));
  const bool nests = TableOf(what) == Table::kRanges;
  const auto name_of = [&](uint32_t row) { return std::string(trace.Text(columns.name[row])); };
  for (uint32_t row = 0; row < columns.size(); ++row) {
    const int64_t part = PartOf(columns.interval(Row{row}), window);
    if (part < 0) continue;
    if (nests) {
      const Row parent = trace.ranges.parent[row];
      if (parent != kNoRow && Counts(trace, what, static_cast<uint32_t>(parent))) {
        rows[name_of(static_cast<uint32_t>(parent))].self -= part;
      }
      if (!Counts(trace, what, row)) continue;
    }
    TwinRow& sum = rows[name_of(row)];
    sum.parts.push_back(part);
    sum.self += part;
    if (part > sum.longest) {
      sum.longest = part;
      sum.longest_row = row;
    }
  }
  return rows;
}

void ExpectSameAsTwin(const Trace& trace, NamedEvents what, const IntervalSet& window) {
  const NameTable table = MakeNameTable(trace, what, window);
  std::map<std::string, TwinRow> twin = TableTwin(trace, what, window);
  ASSERT_EQ(table.rows.size(), twin.size());
  uint64_t events = 0;
  int64_t self = 0;
  for (const NameRow& row : table.rows) {
    TwinRow& expected = twin[std::string(trace.Text(row.name))];
    std::sort(expected.parts.begin(), expected.parts.end());
    int64_t total = 0;
    for (int64_t part : expected.parts) total += part;
    ASSERT_EQ(row.count, expected.parts.size());
    EXPECT_EQ(row.total.ns, total);
    EXPECT_EQ(row.self.ns, std::max<int64_t>(expected.self, 0));
    EXPECT_EQ(row.median.ns, expected.parts[(expected.parts.size() - 1) / 2]);
    EXPECT_EQ(row.longest.ns, expected.longest);
    EXPECT_EQ(static_cast<uint32_t>(row.longest_row), expected.longest_row);
    events += row.count;
    self += row.self.ns;
  }
  EXPECT_EQ(table.events, events);
  EXPECT_EQ(table.self.ns, self);
}

TEST(NameTableTwin, AgreesOnRandomTracesAndWindows) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed, {.nested = seed % 3 != 0}));
    Random random(seed + 1000);
    std::vector<Interval> parts;
    const int64_t length = std::max<int64_t>(1, trace.extent.Length().ns);
    for (int64_t i = random.Between(0, 3); i >= 0; --i) {
      const int64_t begin = trace.extent.begin.ns + random.Between(0, length);
      parts.push_back({{begin}, {begin + random.Between(1, length)}});
    }
    for (const NamedEvents what : {NamedEvents::kDeviceOps, NamedEvents::kOperators,
                                   NamedEvents::kCalls, NamedEvents::kPython}) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " what " << static_cast<int>(what));
      ExpectSameAsTwin(trace, what, Whole());
      ExpectSameAsTwin(trace, what, IntervalSet::Union(parts));
      if (HasFailure()) return;
    }
  }
}

TEST(NameTable, CutsEventsAtTheWindowAndKeepsTheLongest) {
  const Trace trace = TraceFromScript(R"(
stream 0 7
kernel 0 10 gemm | corr=1
kernel 20 50 gemm | corr=2
copy 60 64 Memcpy HtoD (Pinned -> Device) | corr=3
)");
  const IntervalSet window = IntervalSet::Union({{{5 * kUs}, {30 * kUs}}});
  const NameTable table = MakeNameTable(trace, NamedEvents::kDeviceOps, window);
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0].count, 2u);
  EXPECT_EQ(table.rows[0].total, Microseconds(15));
  EXPECT_EQ(table.rows[0].Mean(), Nanoseconds(7500));
  EXPECT_EQ(table.rows[0].median, Microseconds(5));
  EXPECT_EQ(table.rows[0].longest, Microseconds(10));
  EXPECT_EQ(table.rows[0].longest_row, Row{1});
  EXPECT_EQ(table.rows[0].category, Category::kCompute);
  EXPECT_EQ(MakeNameTable(trace, NamedEvents::kDeviceOps, Whole()).rows.size(), 2u);
}

TEST(NameTable, ChargesTimeToTheInnermostOperator) {
  const Trace trace = TraceFromScript(R"(
thread 1
op 0 100 aten::linear
op 10 40 aten::addmm
python 20 30 train.py(3): step
call 50 60 cudaLaunchKernel | corr=1
)");
  const NameTable table = MakeNameTable(trace, NamedEvents::kOperators, Whole());
  ASSERT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(RowOf(trace, table, "aten::linear")->self, Microseconds(70));
  EXPECT_EQ(RowOf(trace, table, "aten::linear")->total, Microseconds(100));
  EXPECT_EQ(RowOf(trace, table, "aten::addmm")->self, Microseconds(20));
  EXPECT_EQ(MakeNameTable(trace, NamedEvents::kPython, Whole()).rows.size(), 1u);
  EXPECT_EQ(MakeNameTable(trace, NamedEvents::kCalls, Whole()).self, Microseconds(10));
}

TEST(NameTable, LeavesTheProfilersOwnSpanOut) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const auto add = [&](std::string_view name, std::string_view category) {
    builder.AddRange({TraceTime{0}, TraceTime{9}, builder.Intern(name), thread,
                      builder.Intern(category), kNoArgs},
                     RangeKind::kOther);
  };
  add("PyTorch Profiler (0)", "Trace");
  add("anything", "of others");
  const Trace trace = std::move(builder).Build();
  const NameTable table = MakeNameTable(trace, NamedEvents::kOperators, Whole());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(trace.Text(table.rows[0].name), "anything");
}

TEST(NameTable, EndsEarlyWhenCancelled) {
  const Trace trace = TraceFromScript("stream 0 7\nkernel 0 10 gemm | corr=1\n");
  const std::atomic<bool> cancel = true;
  EXPECT_FALSE(
      RunUnlessCancelled(&cancel, [&] { MakeNameTable(trace, NamedEvents::kDeviceOps, Whole()); }));
}

TEST(Histogram, HasEachEventOfTheNameInTheBinOfItsDuration) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Trace trace = BuildTrace(DrawTrace(seed));
    for (const StringId name :
         std::set<StringId>(trace.ranges.name.begin(), trace.ranges.name.end())) {
      const Histogram histogram = MakeHistogram(trace, Table::kRanges, name);
      std::vector<uint64_t> bins(histogram.bins.size(), 0);
      uint64_t count = 0;
      for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
        if (trace.ranges.name[row] != name) continue;
        ++count;
        const Duration length = trace.ranges.interval(Row{row}).Length();
        const size_t bin = histogram.BinOf(length);
        ASSERT_LT(bin, bins.size());
        ++bins[bin];
        EXPECT_LE(histogram.shortest, length);
        EXPECT_GE(histogram.longest, length);
        // Their edges are rounded to nanoseconds.
        EXPECT_LE(histogram.BeginOf(bin), length + Nanoseconds(1));
        EXPECT_GE(histogram.BeginOf(bin + 1) + Nanoseconds(1), length);
      }
      EXPECT_EQ(histogram.count, count);
      EXPECT_EQ(histogram.bins, bins);
    }
  }
}

TEST(Histogram, OfNothingIsEmptyAndOfEqualsOneBin) {
  const Trace trace =
      TraceFromScript("stream 0 7\nkernel 0 0 gemm | corr=1\nkernel 5 5 gemm | corr=2\n");
  const StringId gemm = trace.strings.Find("gemm");
  EXPECT_EQ(MakeHistogram(trace, Table::kApi, gemm).count, 0u);
  EXPECT_EQ(MakeHistogram(trace, Table::kIdle, gemm).count, 0u);
  const Histogram histogram = MakeHistogram(trace, Table::kDeviceOps, gemm);
  EXPECT_EQ(histogram.bins, std::vector<uint64_t>{2});
  EXPECT_EQ(histogram.BinOf(Duration{0}), 0u);
}

TEST(SiteText, IsShortenedToTheEndOfItsPath) {
  const Site site{"/home/me/project/train.py", 12, "step", "aten::item", 1};
  EXPECT_EQ(SiteText(ShortSite(site)), "project/train.py:12 step (aten::item)");
  for (const char* file : {"train.py", "/train.py", "", "a/train.py"}) {
    EXPECT_EQ(ShortSite({file, 1, "f", "", 1}).file, file);
  }
}

TEST(SiteTable, PutsTheLineThatBlocksLongestFirst) {
  const Trace trace = TraceFromScript(R"(
thread 1
repeat 3 every 1000
  op   10 400 aten::item | stack=train.py(12): step
  call 20 390 cudaStreamSynchronize
  op   500 520 aten::mm | stack=model.py(7): forward
  call 505 510 cudaLaunchKernel | corr=1
  call 511 515 cudaLaunchKernel | corr=2
end
call 3600 3610 cudaMalloc
)");
  const RankModel model(trace);
  const std::vector<SiteRow> rows = MakeSiteTable(model, Whole());
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(SiteText(rows[0].site), "train.py:12 step (aten::item)");
  EXPECT_EQ(rows[0].blocking, 3u);
  EXPECT_EQ(rows[0].blocked, Microseconds(3 * 370));
  EXPECT_EQ(rows[0].site.count, 3);
  EXPECT_EQ(rows[1].site.file, "model.py");
  EXPECT_EQ(rows[1].launches, 6u);
  EXPECT_EQ(rows[1].blocked, Duration{});
  EXPECT_EQ(rows[1].longest, Microseconds(5));
  EXPECT_EQ(SiteText(rows[2].site), "source not recorded");
  EXPECT_EQ(rows[2].allocations, 1u);
  const IntervalSet first = IntervalSet::Union({{{0}, {1000 * kUs}}});
  EXPECT_EQ(MakeSiteTable(model, first)[0].blocking, 1u);
}

TEST(KernelTitle, BeginsWithTheKernelsOwnName) {
  EXPECT_EQ(KernelTitle("void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>>"
                        "(int, at::detail::Array<char*, 3>)"),
            "vectorized_elementwise_kernel<4, at::native::Add<float>>"
            "(int, at::detail::Array<char*, 3>)");
  EXPECT_EQ(KernelTitle("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>(int)"),
            "CatArrayBatchedCopy<float>(int)");
  EXPECT_EQ(KernelTitle("void f<(anonymous namespace)::g>(a::b)"),
            "f<(anonymous namespace)::g>(a::b)");
  EXPECT_EQ(KernelTitle("unsigned int count(a::b)"), "count(a::b)");
  EXPECT_EQ(KernelTitle("_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernelE"),
            "KernelINS_4conv6kernelE")
      << "no demangler takes cuDNN's";
  for (const char* const broken :
       {"_ZN", "_ZN9", "_ZN9abc", "_ZN0abc", "_ZNK3abc", "_ZN99999999999999999999a"}) {
    EXPECT_EQ(KernelTitle(broken), broken);
  }
}

TEST(KernelTitle, LeavesOtherNamesAsTheyAre) {
  for (const std::string_view name :
       {"", "gemm_kernel", "Memcpy HtoD (Pinned -> Device)", "Memset (Device)", "a name of words",
        "void thrust::f::operator()<int>(int)", "<", "(", "(anonymous namespace)",
        "ncclKernel_AllReduce(ncclDevComm*)", "a::"}) {
    EXPECT_EQ(KernelTitle(name), name);
  }
}

}  // namespace
}  // namespace trainprof
