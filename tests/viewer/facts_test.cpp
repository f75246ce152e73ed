#include "analysis/tables/facts.h"

#include <gtest/gtest.h>

#include "analysis/tables/memory_table.h"
#include "analysis/tables/rank_table.h"
#include "tests/support/trace_script.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/kineto_words.h"
#include "viewer/timeline/lines.h"

namespace trainprof {
namespace {

// One stream's operation with arguments of the types that kineto writes.
class OneOp {
 public:
  OneOp() {
    stream_ = builder_.FindOrAddStream(builder_.FindOrAddProcess(0), 0, 7);
    thread_ = builder_.FindOrAddThread(builder_.FindOrAddProcess(1), 1);
  }
  void Int(std::string_view key, int64_t value) {
    args_.push_back({builder_.Intern(key), {ArgValue::Type::kInt, {}, value, 0}});
  }
  void Json(std::string_view key, std::string_view json) {
    args_.push_back({builder_.Intern(key), {ArgValue::Type::kJson, builder_.Intern(json), 0, 0}});
  }
  void AddKernel() {
    builder_.AddDeviceOp(At(0, 10, "gemm", stream_), DeviceOpKind::kKernel, CopyDirection::kUnknown,
                         0, 1, KinetoArguments(builder_).DetailsOf(args_));
  }
  Event At(int64_t begin, int64_t end, std::string_view name, TrackId track) {
    return {TraceTime{begin}, TraceTime{end},         builder_.Intern(name), track,
            kEmptyString,     builder_.AddArgs(args_)};
  }
  TraceBuilder builder_;
  TrackId stream_{};
  TrackId thread_{};
  std::vector<Arg> args_;
};

TEST(Facts, OfAKernelAreItsShapeAndOccupancy) {
  OneOp op;
  op.Json("grid", "[64, 1, 1]");
  op.Json("block", "[128,1,1]");
  op.Int("registers per thread", 90);
  op.Int("shared memory", 49152);
  op.Int("est. achieved occupancy %", 4);
  op.AddKernel();
  const Trace trace = std::move(op.builder_).Build();
  const std::vector<Fact> expected = {{"grid", "64 x 1 x 1"},
                                      {"block", "128 x 1 x 1"},
                                      {"registers", "90 per thread"},
                                      {"shared memory", "49152 B per block"},
                                      {"occupancy", "4 % (estimated)"}};
  EXPECT_EQ(FactsOf(trace, Table::kDeviceOps, Row{0}), expected);
  EXPECT_EQ(ArgumentsOf(trace, Table::kDeviceOps, Row{0}).size(), 5u);
  EXPECT_EQ(ArgumentsOf(trace, Table::kDeviceOps, Row{0})[0].value, "[64, 1, 1]");
}

// As a file of one value a line has them; Kineto writes 0 % where it does not know.
TEST(Facts, OfAPrettyPrintedKernelStandOnOneLine) {
  OneOp op;
  op.Json("grid", "[\n        132,\r\n\t1,\n        1\n      ]");
  op.Json("block", "[ 128, 1, 1 ]");
  op.Int("est. achieved occupancy %", 0);
  op.AddKernel();
  const Trace trace = std::move(op.builder_).Build();
  const std::vector<Fact> expected = {{"grid", "132 x 1 x 1"}, {"block", "128 x 1 x 1"}};
  EXPECT_EQ(FactsOf(trace, Table::kDeviceOps, Row{0}), expected);
}

TEST(Facts, OfACopyAreBytesDirectionAndRate) {
  OneOp op;
  op.builder_.AddDeviceOp(op.At(0, 2000, "Memcpy HtoD (Pageable -> Device)", op.stream_),
                          DeviceOpKind::kCopy, CopyDirection::kHostToDevice, 25000, 1,
                          {.source = MemoryKind::kPageable});
  const Trace trace = std::move(op.builder_).Build();
  const std::vector<Fact> expected = {{"direction", "host to device"},
                                      {"host memory", "pageable"},
                                      {"bytes", "25000"},
                                      {"rate", "12.50 GB/s"}};
  EXPECT_EQ(FactsOf(trace, Table::kDeviceOps, Row{0}), expected);
}

TEST(Facts, OfWhatIsNoEventAreNone) {
  const Trace trace = TraceFromScript("thread 1\nop 0 1 a\n");
  EXPECT_TRUE(FactsOf(trace, Table::kIdle, Row{0}).empty());
  EXPECT_TRUE(ArgumentsOf(trace, Table::kBusy, Row{0}).empty());
  EXPECT_TRUE(StackOf(trace, Table::kSteps, Row{0}).empty());
}

TEST(Stack, OfAKernelIsThatOfTheCallThatLaunchedIt) {
  const Trace trace = TraceFromScript(R"(
thread 1
op 0 100 aten::linear | stack=torch/nn/linear.py(114): forward;train.py(12): step
op 10 90 aten::addmm
call 20 30 cudaLaunchKernel | corr=1
stream 0 7
kernel 40 50 gemm | corr=1
)");
  const std::vector<StackFrame> expected = {{"aten::addmm", false},
                                            {"aten::linear", false},
                                            {"torch/nn/linear.py(114): forward", false},
                                            {"train.py(12): step", true}};
  EXPECT_EQ(StackOf(trace, Table::kDeviceOps, Row{0}), expected);
  EXPECT_EQ(StackOf(trace, Table::kApi, Row{0}), expected);
  const std::vector<StackFrame> own(expected.begin() + 2, expected.end());
  EXPECT_EQ(StackOf(trace, Table::kRanges, Row{0}), own);
}

TEST(Stack, OfAKernelWithoutLaunchIsEmpty) {
  const Trace trace = TraceFromScript("stream 0 7\nkernel 0 10 gemm | corr=1\n");
  EXPECT_TRUE(StackOf(trace, Table::kDeviceOps, Row{0}).empty());
}

TEST(Stack, IsCutWhenItIsDeep) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  for (int64_t depth = 0; depth < 1000; ++depth) {
    builder.AddRange({TraceTime{depth}, TraceTime{5000 - depth}, builder.Intern("f"), thread},
                     RangeKind::kCpuOp);
  }
  const Trace trace = std::move(builder).Build();
  EXPECT_EQ(StackOf(trace, Table::kRanges, Row{999}).size(), kMostFrames);
}

TEST(MemoryTable, CountsByDeviceAndKeepsTheLargest) {
  TraceBuilder builder;
  const TrackId thread = builder.FindOrAddThread(builder.FindOrAddProcess(1), 1);
  const auto add = [&](int64_t at, int64_t bytes, int64_t device) {
    Allocation allocation;
    allocation.bytes = bytes;
    allocation.device_id = device;
    builder.AddInstant({TraceTime{at}, TraceTime{at}, builder.Intern("freed or not"), thread}, 't',
                       builder.AddAllocation(allocation));
  };
  for (int64_t i = 0; i < 500; ++i) add(i, i, 0);
  add(500, -499, 0);
  add(501, INT64_MAX, -1);
  add(502, INT64_MAX, -1);
  const Trace trace = std::move(builder).Build();
  const IntervalSet all = IntervalSet::Union({{{0}, {1000}}});
  const MemoryTable table = MakeMemoryTable(trace, all);
  const std::vector<DeviceMemory> expected = {{-1, 2, 0, INT64_MAX, INT64_MAX},
                                              {0, 500, 1, 499 * 500 / 2, 499}};
  EXPECT_EQ(table.devices, expected);
  ASSERT_EQ(table.largest.size(), kMostAllocations);
  EXPECT_EQ(table.largest[2].bytes, 499);
  EXPECT_EQ(table.largest[99].bytes, 402);
  const IntervalSet early = IntervalSet::Union({{{0}, {10}}});
  EXPECT_EQ(MakeMemoryTable(trace, early).devices[0].allocations, 10u);
}

constexpr std::string_view kRank = R"(
thread 1
repeat 4 every 1000
  step 0 1000 ProfilerStep#1
  call 10 20 cudaLaunchKernel | corr=1
end
stream 0 7
repeat 4 every 1000
  kernel 100 600 gemm | corr=1
end
)";

TEST(RankTable, TellsBusyTimeAndLateness) {
  Trace first = TraceFromScript(kRank);
  Trace second = TraceFromScript(kRank);
  second.base_ns += Microseconds(250).ns;
  const RankAnalysis a = Analyze(first);
  const RankAnalysis b = Analyze(second);
  const Lines lines({{&first, &a}, {&second, &b}});
  const RankAnalysis* both[] = {&a, &b};
  const std::vector<RankRow> rows = MakeRankTable(lines.clock(), both);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].steps, 4u);
  // From the begin of the first kernel, which had waited, to the end of the last one.
  EXPECT_DOUBLE_EQ(rows[0].mean_ms, 3.5 / 4);
  EXPECT_NEAR(rows[0].busy, 2 / 3.5, 1e-9);
  double sum = 0;
  for (double ms : rows[0].device_ms) sum += ms;
  EXPECT_NEAR(sum, rows[0].mean_ms, 1e-9);
  EXPECT_EQ(rows[0].late, Duration{0});
  EXPECT_EQ(rows[1].late, Microseconds(250));
}

// A rank that was profiled a step later is not late by one.
TEST(RankTable, ComparesStepsOfOneNumber) {
  const std::string_view tail = "step 1000 1100 ProfilerStep#6\nstep 2000 2100 ProfilerStep#7\n";
  const auto rank = [&](const std::string& head) {
    return TraceFromScript("thread 1\n" + head + std::string(tail));
  };
  const Trace first = rank("step 0 100 ProfilerStep#5\n");
  const Trace second = rank("op 0 100 aten::mm\n");
  const RankAnalysis a = Analyze(first);
  const RankAnalysis b = Analyze(second);
  const Lines lines({{&first, &a}, {&second, &b}});
  const RankAnalysis* both[] = {&a, &b};
  const std::vector<RankRow> rows = MakeRankTable(lines.clock(), both);
  EXPECT_EQ(rows[0].late, Duration{0});
  EXPECT_EQ(rows[1].late, Duration{0});
}

TEST(RankTable, ClaimsNoSkewOfClocksThatDoNotAgree) {
  Trace first = TraceFromScript(kRank);
  Trace second = TraceFromScript(kRank);
  second.base_ns += Seconds(30LL * 24 * 3600).ns;
  const RankAnalysis a = Analyze(first);
  const RankAnalysis b = Analyze(second);
  const Lines lines({{&first, &a}, {&second, &b}});
  ASSERT_FALSE(lines.aligned());
  const RankAnalysis* both[] = {&a, &b};
  for (const RankRow& row : MakeRankTable(lines.clock(), both)) EXPECT_FALSE(row.late);
  const RankAnalysis* one[] = {nullptr, &b};
  EXPECT_EQ(MakeRankTable(lines.clock(), one).size(), 1u);
}

}  // namespace
}  // namespace trainprof
