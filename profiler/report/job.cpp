// Finds out what a path is, loads its traces, analyses each.
#include "profiler/report/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "trace/formats/importer.h"
#include "trace/formats/split_ranks.h"
#include "trace/recording/reader.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

std::string_view KindName(SourceKind kind) {
  switch (kind) {
    case SourceKind::kRecording:
      return "recording";
    case SourceKind::kKineto:
      return "kineto";
    case SourceKind::kChrome:
      return "chrome";
  }
  return "chrome";
}

bool Trains(const Trace& trace) {
  return trace.device_ops.size() > 0 || FindSteps(trace).source != StepSource::kNone;
}

bool IsTraceFile(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.ends_with(".json") || name.ends_with(".json.gz");
}

using VisitTrace = std::function<Result<void>(Trace trace)>;

Result<void> VisitRecording(const fs::path& path, const VisitTrace& visit) {
  return recording::VisitRecording(
      path, [&](recording::RankTrace rank) { return visit(std::move(rank.trace)); });
}

// "reading a.json.gz: 42 %, 310 MB/s, 1.2 million events, 3 s left"; MB of JSON, after inflating.
std::string ProgressText(const fs::path& path, const ImportProgress& progress, double seconds) {
  constexpr double kMega = 1e6;
  const double share = progress.file_bytes == 0 ? 0
                                                : static_cast<double>(progress.file_bytes_read) /
                                                      static_cast<double>(progress.file_bytes);
  std::string text = fmt::format(
      "reading {}: {:.0f} %, {:.0f} MB/s, {:.1f} million events", path.filename().string(),
      100 * share, static_cast<double>(progress.parsed_bytes) / kMega / std::max(seconds, 1e-3),
      static_cast<double>(progress.events) / kMega);
  if (share > 0) {
    text += fmt::format(", {:.0f} s left", std::ceil(seconds * (1 - std::min(share, 1.0)) / share));
  }
  return text;
}

bool IsCancelled(const LoadOptions& options) {
  return options.cancel != nullptr && options.cancel->load();
}

Error Cancelled(const fs::path& path) { return Error{fmt::format("{}: cancelled", path.string())}; }

Result<Trace> LoadFile(const fs::path& path, const LoadOptions& options) {
  ImportOptions import_options;
  import_options.cancel = options.cancel;
  if (options.progress) {
    import_options.progress = [&path, &options, start = std::chrono::steady_clock::now()](
                                  const ImportProgress& progress) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      options.progress(ProgressText(path, progress, passed.count()));
    };
  }
  return ImportTrace(path.string(), import_options);
}

// Each rank of a file; of one that cannot be read, the error.
Result<void> VisitFile(const fs::path& path, const LoadOptions& options, const VisitTrace& visit,
                       std::vector<std::string>& unreadable) {
  Result<Trace> loaded = LoadFile(path, options);
  if (IsCancelled(options)) return Cancelled(path);
  if (!loaded.ok()) {
    unreadable.push_back(loaded.error());
    return {};
  }
  for (Trace& trace : SplitRanks(std::move(loaded).value())) {
    Result<void> visited = visit(std::move(trace));
    if (!visited.ok()) return visited;
  }
  return {};
}

Result<std::vector<fs::path>> TraceFilesIn(const fs::path& path) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_regular_file(error) && IsTraceFile(entry.path())) files.push_back(entry.path());
  }
  if (files.empty()) {
    return Error{
        fmt::format("{}: neither a trainprof recording nor a folder of traces (*.json, *.json.gz)",
                    path.string())};
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Result<std::vector<std::string>> VisitTraces(const fs::path& path, const LoadOptions& options,
                                             const VisitTrace& visit) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error{fmt::format("{}: no such file or folder", path.string())};
  }
  std::vector<std::string> unreadable;
  if (recording::LooksLikeRecording(path)) {
    const Result<void> visited = VisitRecording(path, visit);
    if (!visited.ok()) return Error{visited.error()};
    return unreadable;
  }
  std::vector<fs::path> files{path};
  if (fs::is_directory(path, error)) {
    Result<std::vector<fs::path>> found = TraceFilesIn(path);
    if (!found.ok()) return Error{found.error()};
    files = std::move(found).value();
  }
  for (const fs::path& file : files) {
    const Result<void> visited = VisitFile(file, options, visit, unreadable);
    if (!visited.ok()) return Error{visited.error()};
  }
  if (unreadable.size() == files.size()) return Error{unreadable.front()};
  return unreadable;
}

Result<std::vector<Trace>> LoadTraces(const fs::path& path, const LoadOptions& options) {
  std::vector<Trace> traces;
  const Result<std::vector<std::string>> unreadable =
      VisitTraces(path, options, [&](Trace trace) -> Result<void> {
        traces.push_back(std::move(trace));
        return {};
      });
  if (!unreadable.ok()) return Error{unreadable.error()};
  // A settings file among the traces is no reason to give up; a broken rank must be seen.
  const std::vector<std::string>& errors = unreadable.value();
  if (traces.empty() || errors.empty()) return traces;
  traces.front().quality.Count("unreadable_file", QualitySeverity::kDataLoss,
                               static_cast<int64_t>(errors.size()), errors.front());
  return traces;
}

Result<JobAnalysis> AnalyzePath(const fs::path& path, const LoadOptions& options) {
  Result<std::vector<Trace>> loaded = LoadTraces(path, options);
  if (!loaded.ok()) return Error{loaded.error()};
  std::vector<Trace>& traces = loaded.value();
  if (traces.empty()) return Error{fmt::format("{}: holds no trace", path.string())};

  JobAnalysis job;
  job.path = path.string();
  job.kind = KindName(traces.front().source);
  // A recording also holds launchers and helpers; they are ranks only when nobody trains.
  const bool anyone_trains = std::any_of(traces.begin(), traces.end(), Trains);
  int64_t next_rank = 0;
  for (Trace& trace : traces) {
    if (anyone_trains && trace.source == SourceKind::kRecording && !Trains(trace)) {
      job.other_processes.push_back(trace.path);
      continue;
    }
    if (IsCancelled(options)) return Cancelled(path);
    if (!trace.rank_known) trace.rank = next_rank;
    next_rank = trace.rank + 1;
    job.ranks.push_back(Analyze(trace));
    trace = Trace{};  // frees it: 64 ranks need not be in memory together
  }
  std::stable_sort(job.ranks.begin(), job.ranks.end(),
                   [](const RankAnalysis& a, const RankAnalysis& b) { return a.rank < b.rank; });
  return job;
}

const RankAnalysis& SlowestRank(const JobAnalysis& job) {
  return *std::max_element(job.ranks.begin(), job.ranks.end(),
                           [](const RankAnalysis& a, const RankAnalysis& b) {
                             return a.PerStepMs(a.window) < b.PerStepMs(b.window);
                           });
}

}  // namespace trainprof
