// Export of a Kineto trace to Chrome JSON, plain and gzip, against nlohmann's dump of the same
// document. CPU time; the file goes to the temporary folder.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/benchmarks/repeated_trace.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

std::string SourcePath() { return std::string(TRAINPROF_CORPUS) + "/hta/ddp_item_a100.json.gz"; }

void Export(benchmark::State& state, const char* ending) {
  const Result<Trace> trace = ImportTrace(SourcePath());
  if (!trace.ok()) {
    state.SkipWithError("no corpus: set TRAINPROF_CORPUS");
    return;
  }
  const std::string path =
      (std::filesystem::temp_directory_path() /
       fmt::format("trainprof-export-{}{}", static_cast<int>(getpid()), ending))
          .string();
  for (auto _ : state) {
    const Result<void> done = ExportTrace(trace.value(), path, {.overwrite = true});
    if (!done.ok()) state.SkipWithError(done.error().c_str());
  }
  const size_t json_bytes = ReadInflated(path).size();
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(json_bytes));
  std::filesystem::remove(path);
}

void BM_ExportJson(benchmark::State& state) { Export(state, ".json"); }
void BM_ExportJsonGz(benchmark::State& state) { Export(state, ".json.gz"); }

void BM_NlohmannDump(benchmark::State& state) {
  const nlohmann::json document = nlohmann::json::parse(ReadInflated(SourcePath()), nullptr, false);
  size_t bytes = 0;
  for (auto _ : state) {
    const std::string text = document.dump();
    bytes = text.size();
    benchmark::DoNotOptimize(text.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bytes));
}

BENCHMARK(BM_ExportJson)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_ExportJsonGz)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_NlohmannDump)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace trainprof

BENCHMARK_MAIN();
