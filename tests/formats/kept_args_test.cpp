// An import that keeps the arguments alone that an analysis reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/formats/random_trace.h"
#include "tests/support/trace_text.h"
#include "trace/formats/chrome/split_ranks.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

Result<Trace> ImportedWith(const std::string& path, KeptArgs args) {
  ImportOptions options;
  options.args = args;
  return ImportTrace(path, options);
}

Trace ImportedText(std::string_view json, KeptArgs args) {
  const TemporaryFile file("trace.json", json);
  Result<Trace> trace = ImportedWith(file.path(), args);
  EXPECT_TRUE(trace.ok()) << trace.error();
  return std::move(trace).value();
}

// All columns but the arguments, a line a row, in an order of its own: of equal rows the arguments
// may tell which one stands first.
std::string Columns(const Trace& trace) {
  std::vector<std::string> lines;
  ForEachTable(trace, [&]<class T>(Table number, const T& table) {
    for (uint32_t row = 0; row < table.size(); ++row) {
      const Track& track = trace.tracks[Index(table.track[row])];
      std::string line = fmt::format(
          "{} {}/{} {} {} {}", static_cast<int>(number), trace.processes[Index(track.process)].pid,
          track.tid, table.begin[row].ns, table.end(row).ns, trace.Text(table.name[row]));
      if constexpr (requires { table.correlation; }) {
        line += fmt::format(" #{}", table.correlation[row]);
      }
      if constexpr (requires { table.kind; }) {
        line += fmt::format(" kind {}", static_cast<int>(table.kind[row]));
      }
      if constexpr (requires { table.launch; }) {
        const Row launch = table.launch[row];
        line += fmt::format(" {} bytes launched {}", table.bytes[row],
                            launch == kNoRow ? -1 : trace.api.begin[Index(launch)].ns);
        const LaunchConfig* const config = trace.ConfigOf(Row{row});
        if (config != nullptr) line += fmt::format(" {}", fmt::join(config->grid, "x"));
        const Collective* const call = trace.CollectiveOf(Row{row});
        if (call != nullptr) {
          line += fmt::format(" {} {} {} {}", trace.Text(call->operation),
                              trace.Text(call->communicator), trace.Text(call->members),
                              call->sequence);
        }
      }
      if constexpr (requires { table.waited_record; }) {
        line += fmt::format(" waits {} {} {} {}", table.context[row], table.waited_event[row],
                            table.waited_stream[row], table.waited_record[row]);
      }
      if constexpr (requires { table.allocation; }) {
        const Allocation* const allocation = trace.AllocationOf(Row{row});
        if (allocation != nullptr) {
          line += fmt::format(" {} B at {} of {} {}", allocation->bytes, allocation->address,
                              allocation->device_id, fmt::join(allocation->totals, " "));
        }
      }
      lines.push_back(std::move(line));
    }
  });
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}\n{}", QualityText(trace), fmt::join(lines, "\n"));
}

TEST(KeptArgs, AreThoseThatAnAnalysisReads) {
  const Trace trace = ImportedText(
      R"json({"traceEvents":[
    {"ph":"X","cat":"cpu_op","name":"aten::add","pid":5,"tid":5,"ts":10,"dur":9,"args":{"External id":1,"Ev Idx":4,"Call stack":"a.py(3): f"}},
    {"ph":"X","cat":"python_function","name":"a.py(3): f","pid":5,"tid":5,"ts":9,"dur":11,"args":{"Python id":2,"Python parent id":1}},
    {"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":5,"tid":5,"ts":11,"dur":2,"args":{"External id":1,"cbid":211,"correlation":3,"result":2}},
    {"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":14,"dur":3,"args":{"External id":1,"device":0,"stream":7,"correlation":3,"grid":[2,1,1],"Seq":5}},
    {"ph":"X","cat":"gpu_thing","name":"x","pid":0,"tid":7,"ts":18,"dur":1,"args":{"device":0,"stream":7,"correlation":9}},
    {"ph":"C","name":"load","pid":5,"tid":5,"ts":12,"args":{"user":3}},
    {"ph":"i","name":"[memory]","pid":5,"tid":5,"ts":13,"s":"t","args":{"Bytes":512}}]})json",
      KeptArgs::kOfAnalysis);
  const std::string text = TraceText(trace);
  for (const char* kept :
       {"aten::add\" cat cpu_op at a.py(3): f in a.py(3): f External id=1", "Python id=2\n",
        "#3 result=2\n", "cat kernel #3 grid 2x1x1  of   number 5", "scope t size 512", "user=3",
        "cat gpu_thing correlation=9\n"}) {
    EXPECT_NE(text.find(kept), std::string::npos) << kept << "\n" << text;
  }
  for (const char* gone :
       {"Ev Idx", "Call stack=", "parent id=", "cbid", "stream=", "Bytes=", "Seq="}) {
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << "\n" << text;
  }
}

TEST(KeptArgs, ColumnsAreThoseOfAWholeImport) {
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::string json = RandomTraceJson(seed);
    const Trace whole = ImportedText(json, KeptArgs::kAll);
    const Trace less = ImportedText(json, KeptArgs::kOfAnalysis);
    ASSERT_EQ(Columns(less), Columns(whole));
    EXPECT_EQ(less.source, whole.source);
  }
}

// Both ranks have the same ids: which call launched what is told apart by the renamed ones.
TEST(KeptArgs, RanksOfOneFileComeBackWithTheirIds) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::vector<Trace> ranks;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      ranks.push_back(ImportedText(RandomTraceJson(seed * 2 + rank), KeptArgs::kAll));
    }
    const VisitRanks visit_all = [&](const VisitRank& visit) -> Result<void> {
      for (const Trace& rank : ranks) {
        if (Result<void> visited = visit(rank); !visited.ok()) return visited;
      }
      return {};
    };
    const TemporaryFile out("merged.json");
    ASSERT_TRUE(ExportMerged(visit_all, out.path(), {.overwrite = true}).ok());
    const std::string json = ReadWhole(out.path());
    const std::vector<Trace> whole = SplitRanks(ImportedText(json, KeptArgs::kAll));
    const std::vector<Trace> less = SplitRanks(ImportedText(json, KeptArgs::kOfAnalysis));
    ASSERT_EQ(less.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) ASSERT_EQ(Columns(less[i]), Columns(whole[i]));
  }
}

TEST(KeptArgs, OfRealTracesAreFew) {
  const std::vector<std::string> files = CorpusFiles();
  if (files.empty()) GTEST_SKIP() << "no corpus: set TRAINPROF_CORPUS";
  size_t all = 0;
  size_t kept = 0;
  for (const std::string& path : files) {
    SCOPED_TRACE(path);
    const Result<Trace> whole = ImportTrace(path);
    const Result<Trace> less = ImportedWith(path, KeptArgs::kOfAnalysis);
    ASSERT_TRUE(whole.ok() && less.ok());
    EXPECT_TRUE(Columns(less.value()) == Columns(whole.value()));
    all += whole.value().args.size_bytes();
    kept += less.value().args.size_bytes();
  }
  EXPECT_LT(kept, all / 3) << all;
}

}  // namespace
}  // namespace trainprof
