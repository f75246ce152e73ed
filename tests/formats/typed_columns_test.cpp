// What Kineto's arguments say of collectives, waits and allocations stands in columns, whatever is
// done with the rows.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/trace_text.h"
#include "trace/formats/chrome/split_ranks.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

// No row stands where it belongs.
constexpr std::string_view kJson = R"json({"deviceProperties":[{"id":0}],"traceEvents":[
  {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllReduce","pid":0,"tid":7,"ts":30,"dur":5,
   "args":{"device":0,"stream":7,"Collective name":"allreduce","Process Group Name":"tp","Process Group Ranks":"[0, 1]","Seq":42}},
  {"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":20,"dur":5,"args":{"device":0,"stream":7}},
  {"ph":"X","cat":"kernel","name":"ncclDevKernel_AllGather","pid":0,"tid":7,"ts":10,"dur":5,
   "args":{"device":0,"stream":7,"Collective name":"allgather","Process Group Name":"dp","Process Group Ranks":"[0, 2]","Seq":41}},
  {"ph":"X","cat":"cuda_sync","name":"Context Sync","pid":0,"tid":-1,"ts":90,"dur":2,
   "args":{"cuda_sync_kind":"Context Sync","stream":-1,"correlation":7,"device":0,"context":3}},
  {"ph":"X","cat":"cuda_sync","name":"Event Sync","pid":0,"tid":-1,"ts":60,"dur":2,
   "args":{"cuda_sync_kind":"Event Sync","wait_on_stream":-1,"wait_on_cuda_event_record_corr_id":-1,"wait_on_cuda_event_id":8,"stream":-1,"correlation":6,"device":0,"context":1}},
  {"ph":"X","cat":"cuda_sync","name":"Stream Wait Event","pid":0,"tid":-1,"ts":50,"dur":2,
   "args":{"cuda_sync_kind":"Stream Wait Event","wait_on_stream":20,"wait_on_cuda_event_record_corr_id":32,"wait_on_cuda_event_id":9,"stream":-1,"correlation":5,"device":0,"context":1}},
  {"ph":"X","cat":"cuda_sync","name":"Host Function","pid":0,"tid":7,"ts":40,"dur":2,
   "args":{"cuda_sync_kind":"Host Function","wait_on_host_thread":4712,"stream":7,"correlation":4,"device":0,"context":1}},
  {"ph":"i","s":"t","name":"[memory]","pid":5,"tid":5,"ts":80,
   "args":{"Total Reserved":900,"Total Allocated":500,"Bytes":-100,"Addr":4096,"Device Id":0,"Device Type":1}},
  {"ph":"i","s":"t","name":"mark","pid":5,"tid":5,"ts":75,"args":{"Bytes":1}},
  {"ph":"i","s":"t","name":"[memory]","pid":5,"tid":5,"ts":70,
   "args":{"Total Reserved":900,"Total Allocated":600,"Bytes":100,"Addr":4096,"Device Id":0,"Device Type":1}}
]})json";

constexpr std::string_view kExpected =
    "ncclDevKernel_AllGather: allgather dp [0, 2] 41\n"
    "gemm:\n"
    "ncclDevKernel_AllReduce: allreduce tp [0, 1] 42\n"
    "Stream Wait Event: kind 2 context 1 event 9 stream 20 record 32 thread none\n"
    "Event Sync: kind 1 context 1 event 8 stream none record none thread none\n"
    "Context Sync: kind 4 context 3 event none stream none record none thread none\n"
    "Host Function: kind 6 context 1 event none stream none record none thread 4712\n"
    "[memory]: 100 at 4096 of 0, 600 allocated, 900 reserved\n"
    "mark:\n"
    "[memory]: -100 at 4096 of 0, 500 allocated, 900 reserved\n";

std::string NumberOrNone(int64_t number) {
  return number == kNoCorrelation ? "none" : std::to_string(number);
}

// A line a row, in the order of the tables.
std::string Columns(const Trace& t) {
  std::string text;
  for (uint32_t row = 0; row < t.device_ops.size(); ++row) {
    text += fmt::format("{}:", t.Text(t.device_ops.name[row]));
    if (const Collective* const call = t.CollectiveOf(Row{row})) {
      text += fmt::format(" {} {} {} {}", t.Text(call->operation), t.Text(call->communicator),
                          t.Text(call->members), call->sequence);
    }
    text += '\n';
  }
  for (uint32_t row = 0; row < t.syncs.size(); ++row) {
    text += fmt::format(
        "{}: kind {} context {} event {} stream {} record {} thread {}\n",
        t.Text(t.syncs.name[row]), static_cast<int>(t.syncs.kind[row]), t.syncs.context[row],
        NumberOrNone(t.syncs.waited_event[row]), NumberOrNone(t.syncs.waited_stream[row]),
        NumberOrNone(t.syncs.waited_record[row]), NumberOrNone(t.syncs.waited_thread[row]));
  }
  for (uint32_t row = 0; row < t.instants.size(); ++row) {
    text += fmt::format("{}:", t.Text(t.instants.name[row]));
    if (const Allocation* const allocation = t.AllocationOf(Row{row})) {
      text += fmt::format(" {} at {} of {}, {} allocated, {} reserved", allocation->bytes,
                          allocation->address, allocation->device_id,
                          allocation->Total(MemoryTotal::kAllocated),
                          allocation->Total(MemoryTotal::kReserved));
      EXPECT_EQ(allocation->Total(MemoryTotal::kHost), Allocation::kUnknown);
    }
    text += '\n';
  }
  return text;
}

Trace Imported(std::string_view json, KeptArgs args) {
  const TemporaryFile file("trace.json", json);
  ImportOptions options;
  options.args = args;
  Result<Trace> trace = ImportTrace(file.path(), options);
  EXPECT_TRUE(trace.ok()) << trace.error();
  return std::move(trace).value();
}

TEST(TypedColumns, StandWithTheirRowsWhateverArgumentsAreKept) {
  for (const KeptArgs args : {KeptArgs::kAll, KeptArgs::kOfAnalysis}) {
    const Trace trace = Imported(kJson, args);
    EXPECT_EQ(Columns(trace), kExpected);
    EXPECT_EQ(trace.collectives.size(), 2u);
    EXPECT_EQ(trace.allocations.size(), 2u);
  }
}

TEST(TypedColumns, ComeBackFromAnExport) {
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(Imported(kJson, KeptArgs::kAll), out.path()).ok());
  EXPECT_EQ(Columns(Imported(ReadWhole(out.path()), KeptArgs::kAll)), kExpected);
}

// As a recording or another importer has them: no row has arguments.
TEST(TypedColumns, OfRowsWithoutArgumentsComeBackFromAnExport) {
  Trace trace = Imported(kJson, KeptArgs::kAll);
  trace.source = SourceKind::kOther;
  ForEachTable(trace, [](Table, EventColumns& table) {
    table.args.resize(0);
    table.args.resize(table.size());
  });
  const TemporaryFile out("out.json");
  ASSERT_TRUE(ExportTrace(trace, out.path()).ok());
  EXPECT_EQ(Columns(Imported(ReadWhole(out.path()), KeptArgs::kAll)), kExpected);
}

// There the record that a wait refers to has another number.
TEST(TypedColumns, ComeBackFromAFileOfSeveralRanks) {
  const Trace rank = Imported(kJson, KeptArgs::kAll);
  const VisitRanks twice = [&](const VisitRank& visit) -> Result<void> {
    if (Result<void> visited = visit(rank); !visited.ok()) return visited;
    return visit(rank);
  };
  const TemporaryFile out("merged.json");
  ASSERT_TRUE(ExportMerged(twice, out.path(), {}).ok());
  const std::string merged = ReadWhole(out.path());
  for (const KeptArgs args : {KeptArgs::kAll, KeptArgs::kOfAnalysis}) {
    const std::vector<Trace> ranks = SplitRanks(Imported(merged, args));
    ASSERT_EQ(ranks.size(), 2u);
    for (const Trace& split : ranks) EXPECT_EQ(Columns(split), kExpected);
  }
}

}  // namespace
}  // namespace trainprof
