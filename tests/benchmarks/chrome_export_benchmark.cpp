// Export of a Kineto trace to Chrome JSON, plain and gzip, against nlohmann's dump of the same
// document, and zlib's compression of the same text at its usual level. The file goes to the temporary
// folder. The clock's time: rows become text on all cores, and are compressed and written on a thread of their own. The
// last lines are the ratios.
// Exit status: 0 all gates hold, 1 one does not, or not all of them ran.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <map>
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
    state.PauseTiming();
    std::filesystem::remove(path);
    state.ResumeTiming();
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

void BM_Zlib6(benchmark::State& state) {
  const std::string text = ReadInflated(SourcePath());
  std::vector<Bytef> out(compressBound(text.size()));
  for (auto _ : state) {
    uLongf size = out.size();
    compress2(out.data(), &size, reinterpret_cast<const Bytef*>(text.data()), text.size(), 6);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(text.size()));
}

// Remembers how fast each was.
class Reporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      const auto speed = run.counters.find("bytes_per_second");
      if (speed != run.counters.end()) speeds_[run.run_name.function_name] = speed->second;
    }
    ConsoleReporter::ReportRuns(runs);
  }
  // Whether it holds.
  bool PrintRatio(const char* what, const char* ours, const char* peers, double gate) {
    if (speeds_[ours] == 0 || speeds_[peers] == 0) return false;
    const double ratio = speeds_[ours] / speeds_[peers];
    fmt::print("{}: {:.1f}x; gate {}x: {}\n", what, ratio, gate, ratio >= gate ? "holds" : "FAILS");
    return ratio >= gate;
  }

 private:
  std::map<std::string, double> speeds_;
};

BENCHMARK(BM_ExportJson)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_ExportJsonGz)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_NlohmannDump)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(BM_Zlib6)->Unit(benchmark::kMillisecond)->UseRealTime();

int Run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Reporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  const bool json =
      reporter.PrintRatio(".json against nlohmann's dump", "BM_ExportJson", "BM_NlohmannDump", 9);
  const bool gz =
      reporter.PrintRatio(".json.gz against zlib -6 alone", "BM_ExportJsonGz", "BM_Zlib6", 6);
  return json && gz ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main(int argc, char** argv) { return trainprof::Run(argc, argv); }
