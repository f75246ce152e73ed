#include "analysis/job/open.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <mutex>
#include <numeric>

#include "analysis/job/files_ahead.h"
#include "analysis/job/recover.h"
#include "analysis/job/separate_traces.h"
#include "analysis/steps/steps.h"
#include "trace/base/cancel.h"
#include "trace/base/exit_codes.h"
#include "trace/base/parallel.h"
#include "trace/formats/chrome/split_ranks.h"
#include "trace/io/print.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/segments/segment_liveness.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;

bool Trains(const Trace& trace) {
  return trace.device_ops.size() > 0 || FindSteps(trace).source != StepSource::kNone;
}

uint64_t SizeOf(const fs::path& file) {
  std::error_code error;
  const uintmax_t size = fs::file_size(file, error);
  return error ? 0 : size;  // of a pipe it is not known
}

// How far the files are that are read, some of them at once. Of these the first one is told of.
class FilesProgress {
 public:
  FilesProgress(const std::vector<fs::path>& files, const LoadOptions& options)
      : files_(files), options_(options), parts_(files.size()) {
    for (const fs::path& file : files) bytes_.push_back(SizeOf(file));
    bytes_of_all_ = static_cast<double>(std::accumulate(bytes_.begin(), bytes_.end(), uint64_t{0}));
  }

  // Of none where nobody asks.
  std::function<void(const ImportProgress&)> Of(size_t file) {
    if (!options_.progress) return {};
    return [this, file, start = std::chrono::steady_clock::now()](const ImportProgress& progress) {
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      Tell(file, progress, passed.count());
    };
  }
  void Finish(size_t file) {
    const std::lock_guard lock(mutex_);
    parts_[file] = {1, true};
    while (first_ < parts_.size() && parts_[first_].is_done) ++first_;
  }
  // Of a pipe it is 0.
  uint64_t BytesOf(size_t file) const { return bytes_[file]; }

 private:
  struct Part {
    double share = 0;
    bool is_done = false;
  };

  // "reading a.json.gz: 42 %, 310 MB/s, 1.2 million events, 3 s left"; MB of JSON, after inflating.
  void Tell(size_t file, const ImportProgress& progress, double seconds) {
    constexpr double kMega = 1e6;
    const std::lock_guard lock(mutex_);
    const double share = progress.file_bytes == 0 ? 0
                                                  : static_cast<double>(progress.file_bytes_read) /
                                                        static_cast<double>(progress.file_bytes);
    parts_[file].share = share;
    const bool is_cancelled = options_.cancel != nullptr && *options_.cancel;
    if (file != first_ || is_cancelled) return;
    LoadStatus status;
    status.share = ShareOfAll();
    status.events = progress.events;
    // Of a stream it is not known.
    const std::string percent =
        progress.file_bytes == 0 ? std::string() : fmt::format("{:.0f} %, ", 100 * share);
    status.text =
        fmt::format("reading {}: {}{:.0f} MB/s, {:.1f} million events", NameOf(file), percent,
                    static_cast<double>(progress.parsed_bytes) / kMega / std::max(seconds, 1e-3),
                    static_cast<double>(progress.events) / kMega);
    if (share > 0) {
      status.text +=
          fmt::format(", {:.0f} s left", std::ceil(seconds * (1 - std::min(share, 1.0)) / share));
    }
    options_.progress(status);
  }

  double ShareOfAll() const {
    if (bytes_of_all_ == 0) return -1;
    double read = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      read += parts_[i].share * static_cast<double>(bytes_[i]);
    }
    return read / bytes_of_all_;
  }

  std::string NameOf(size_t file) const {
    const std::string name = files_[file].filename().string();
    return files_.size() == 1 ? name : fmt::format("{} ({} of {})", name, file + 1, files_.size());
  }

  const std::vector<fs::path>& files_;
  const LoadOptions& options_;
  std::vector<uint64_t> bytes_;
  double bytes_of_all_ = 0;
  std::mutex mutex_;
  std::vector<Part> parts_;
  size_t first_ = 0;  // that is not read yet
};

// "reading rank 3 of 8: 42 %, 1.2 million events"
LoadStatus StatusOf(const recording::ReadProgress& progress) {
  LoadStatus status;
  status.share = (static_cast<double>(progress.folder) + progress.share) /
                 static_cast<double>(progress.folders);
  status.events = progress.events;
  status.text = fmt::format("reading rank {} of {}: {:.0f} %, {:.1f} million events",
                            progress.folder + 1, progress.folders, 100 * progress.share,
                            static_cast<double>(progress.events) / 1e6);
  return status;
}

// Counts what could not be recovered of a trace's folder.
void CountUnrecovered(const Recovery& recovery, Trace& trace) {
  const std::string folder = fs::path(trace.path).filename().string();
  for (const Unrecovered& left : recovery.left) {
    if (left.folder != folder) continue;
    trace.quality.Count("unrecovered_device_records", QualitySeverity::kDataLoss, 1, left.why);
  }
}

Result<void> VisitRecording(const fs::path& path, const LoadOptions& options,
                            const VisitTrace& visit) {
  const Recovery recovery = RecoverDead(path, options.cancel);
  CancelPoint();
  if (options.notice && recovery.rows > 0) {
    options.notice(
        fmt::format("{}: {} GPU events of killed processes were recovered from their buffers into "
                    "the recording",
                    path.string(), recovery.rows));
  }
  recording::OnProgress progress;
  if (options.progress) {
    progress = [&](const recording::ReadProgress& at) { options.progress(StatusOf(at)); };
  }
  return recording::VisitRecording(
      path,
      [&](recording::RankTrace rank) {
        CountUnrecovered(recovery, rank.trace);
        return visit(std::move(rank.trace));
      },
      progress);
}

// What reading a file may take, roughly: of packed files the JSON is ten times as large, and its columns half
// of that.
uint64_t MemoryFor(const fs::path& file, uint64_t bytes) {
  const std::string ending = file.extension().string();
  return ending == ".gz" || ending == ".zst" ? 6 * bytes : bytes;
}

// `threads`: that one file may take, as ImportOptions::threads.
Result<Trace> LoadFile(const fs::path& path, const LoadOptions& options, size_t threads,
                       std::function<void(const ImportProgress&)> progress) {
  ImportOptions import_options;
  import_options.cancel = options.cancel;
  import_options.args = options.args;
  import_options.threads = threads;
  import_options.progress = std::move(progress);
  return ImportTrace(path.string(), import_options);
}

// Each rank of a file; of one that cannot be read, the error.
Result<void> VisitFile(Result<Trace> loaded, const LoadOptions& options, const VisitTrace& visit,
                       std::vector<std::string>& unreadable) {
  CancelPoint();  // a file that was not read to its end is not unreadable
  if (!loaded.ok()) {
    unreadable.push_back(loaded.error());
    return {};
  }
  for (Trace& trace : SplitRanks(std::move(loaded).value())) {
    if (options.args == KeptArgs::kOfAnalysis) DropArrows(trace);
    Result<void> visited = visit(std::move(trace));
    if (!visited.ok()) return visited;
  }
  return {};
}

// Takes a number off the front of `text`: its digits without leading zeros; "" where none begins.
std::string_view TakeNumber(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

// rank2.json before rank10.json: numbers in names count as such.
bool ComesBefore(const fs::path& a, const fs::path& b) {
  const std::string name_a = a.filename().string();
  const std::string name_b = b.filename().string();
  std::string_view rest_a = name_a;
  std::string_view rest_b = name_b;
  while (!rest_a.empty() && !rest_b.empty()) {
    const std::string_view number_a = TakeNumber(rest_a);
    const std::string_view number_b = TakeNumber(rest_b);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
    if (rest_a.empty() || rest_b.empty()) break;
    if (rest_a.front() != rest_b.front()) return rest_a.front() < rest_b.front();
    rest_a.remove_prefix(1);
    rest_b.remove_prefix(1);
  }
  return rest_a.size() != rest_b.size() ? rest_a.size() < rest_b.size() : name_a < name_b;
}

// A report or a baseline of ours, which may lie beside what it is about.
bool IsOwnDocument(const fs::path& file) {
  std::array<char, 256> begin{};
  std::ifstream(file, std::ios::binary).read(begin.data(), begin.size() - 1);
  std::string text(begin.data());
  std::erase_if(text, [](char c) { return static_cast<unsigned char>(c) <= ' '; });
  return text.starts_with("{\"trainprof_baseline\":") ||
         (text.starts_with("{\"schema_version\":") && text.find("\"input\":") != std::string::npos);
}

Result<std::vector<fs::path>> TraceFilesIn(const fs::path& path) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    if (entry.is_regular_file(error) && IsNamedLikeATrace(entry.path().native()) &&
        !IsOwnDocument(entry.path())) {
      files.push_back(entry.path());
    }
  }
  if (files.empty()) {
    const std::optional<fs::path> run = recording::NewestRunIn(path);
    return Error{fmt::format("{}: neither a trainprof recording nor a folder of traces ({}){}",
                             path.string(), TraceNames(),
                             run ? ". It holds a recording: give " + run->string() : "")};
  }
  std::sort(files.begin(), files.end(), ComesBefore);
  return files;
}

// Numbers ranks that name none, so that none takes another's place.
class RankNumbers {
 public:
  void Number(Trace& trace) {
    if (!trace.rank_known) trace.rank = next_;
    next_ = trace.rank + 1;
  }

 private:
  int64_t next_ = 0;
};

Result<std::vector<std::string>> VisitFiles(const JobSource& source, const LoadOptions& options,
                                            const VisitTrace& visit) {
  const std::vector<fs::path>& files = source.files;
  std::vector<std::string> unreadable;
  FilesProgress progress(files, options);
  std::vector<uint64_t> needs;
  for (size_t i = 0; i < files.size(); ++i) {
    needs.push_back(MemoryFor(files[i], progress.BytesOf(i)));
  }
  // One file takes all cores, several take one each.
  const size_t threads = files.size() == 1 ? 0 : std::max<size_t>(UsableCores() / files.size(), 1);
  FilesAhead ahead(std::move(needs), [&](size_t file) {
    Result<Trace> loaded = LoadFile(files[file], options, threads, progress.Of(file));
    progress.Finish(file);
    return loaded;
  });
  RankGate gate(source.path, files, visit);
  for (const fs::path& file : files) {
    const VisitTrace pass = [&](Trace trace) { return gate.Pass(file, std::move(trace)); };
    const Result<void> visited =
        VisitFile(ahead.Next(), options, source.is_whole ? pass : visit, unreadable);
    if (!visited.ok()) return Error{visited.error()};
  }
  if (Result<void> finished = gate.Finish(); !finished.ok()) return Error{finished.error()};
  if (unreadable.size() == files.size()) return Error{unreadable.front()};
  return unreadable;
}

Result<std::vector<std::string>> VisitSource(const JobSource& source, const LoadOptions& options,
                                             const VisitTrace& visit) {
  const auto read = [&]() -> Result<std::vector<std::string>> {
    if (!source.is_recording) return VisitFiles(source, options, visit);
    const Result<void> visited = VisitRecording(source.path, options, visit);
    if (!visited.ok()) return Error{visited.error()};
    return std::vector<std::string>();
  };
  return InMemory(source.path, [&] {
    return ResultUnlessCancelled(source.path.string(), options.cancel, read);
  });
}

}  // namespace

Error NotEnoughMemoryFor(const fs::path& path) {
  return {
      fmt::format("{}: there is not enough memory for it. Record fewer steps or ranks, read one "
                  "rank alone, or read it on a machine with more memory",
                  path.string())};
}

void DropArrows(Trace& trace) {
  trace.flows = {};
  trace.flows.track_begin.assign(trace.tracks.size() + 1, 0);
}

Result<JobSource> OpenJob(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Error{
        fmt::format("{}: {}", path.string(), error ? error.message() : "no such file or folder")};
  }
  JobSource source;
  source.path = path;
  source.is_recording = recording::LooksLikeRecording(path);
  if (source.is_recording) {
    source.is_whole = fs::is_directory(path, error) && recording::IsRunDirectory(path);
    source.still_recorded = recording::IsStillRecorded(path);
    source.run = recording::ReadRunState(path);
    if (!source.still_recorded) source.killed = recording::HowItWasKilled(path);
  } else if (fs::is_directory(path, error)) {
    source.is_whole = true;
    Result<std::vector<fs::path>> found = TraceFilesIn(path);
    if (!found.ok()) return Error{found.error()};
    source.files = std::move(found).value();
  } else {
    source.files = {path};
  }
  return source;
}

Result<std::string> PathOrNewestRun(const std::string& path,
                                    const std::function<void(const std::string&)>& notice) {
  if (!path.empty()) return path;
  std::error_code error;
  const auto newest = recording::NewestRunIn(".");
  if (!newest) {
    return Error{
        fmt::format("there is no recording in {}: name one, or make one with trainprof run",
                    fs::current_path(error).string())};
  }
  std::string name = newest->lexically_normal().string();
  notice("newest run here: " + name);
  return name;
}

Result<std::vector<std::string>> VisitTraces(const fs::path& path, const LoadOptions& options,
                                             const VisitTrace& visit) {
  const Result<JobSource> source = OpenJob(path);
  if (!source.ok()) return Error{source.error()};
  RankNumbers numbers;
  return VisitSource(source.value(), options, [&](Trace trace) {
    numbers.Number(trace);
    return visit(std::move(trace));
  });
}

Result<std::vector<Trace>> LoadTraces(const fs::path& path, const LoadOptions& options) {
  std::vector<Trace> traces;
  const Result<std::vector<std::string>> unreadable =
      VisitTraces(path, options, [&](Trace trace) -> Result<void> {
        traces.push_back(std::move(trace));
        return {};
      });
  if (!unreadable.ok()) return Error{unreadable.error()};
  return traces;
}

namespace {

// A process that does not train. What was lost of it may be what would have shown that it does.
void AddOther(const Trace& trace, JobFacts& facts) {
  facts.other_processes.push_back(trace.path);
  if (trace.rank_known) facts.silent_ranks.push_back(trace.rank);
  for (const QualityItem& item : trace.quality.items()) {
    if (item.severity != QualitySeverity::kDataLoss) continue;
    facts.elsewhere.Count(
        item.kind, item.severity, item.count,
        fmt::format("{}: {}", fs::path(trace.path).filename().string(), item.detail));
  }
}

Result<JobFacts> VisitRanks(const JobSource& source, const LoadOptions& options,
                            const VisitTrace& visit) {
  JobFacts facts;
  // A recording also holds launchers and helpers; they are ranks only when nobody trains.
  std::vector<Trace> held_back;
  bool anyone_trains = false;
  size_t ranks = 0;
  RankNumbers numbers;
  const auto pass_on = [&](Trace trace) -> Result<void> {
    numbers.Number(trace);
    ++ranks;
    return visit(std::move(trace));
  };
  Result<std::vector<std::string>> unreadable =
      VisitSource(source, options, [&](Trace trace) -> Result<void> {
        if (source.is_recording && !Trains(trace)) {
          AddOther(trace, facts);
          if (!anyone_trains) held_back.push_back(std::move(trace));
          return {};
        }
        anyone_trains = true;
        held_back.clear();
        return pass_on(std::move(trace));
      });
  if (!unreadable.ok()) return Error{unreadable.error()};
  facts.unreadable = std::move(unreadable).value();
  if (!anyone_trains) {
    facts.other_processes.clear();
    facts.silent_ranks.clear();
    facts.elsewhere = Quality();
  }
  for (Trace& trace : held_back) {
    if (Result<void> visited = pass_on(std::move(trace)); !visited.ok()) {
      return Error{visited.error()};
    }
  }
  if (ranks == 0) return Error{fmt::format("{}: holds no trace", source.path.string())};
  return facts;
}

}  // namespace

Result<JobFacts> VisitJob(const JobSource& source, const LoadOptions& options,
                          const VisitTrace& visit) {
  return InMemory(source.path, [&] {
    return ResultUnlessCancelled(source.path.string(), options.cancel,
                                 [&] { return VisitRanks(source, options, visit); });
  });
}

int Fail(const char* command, const std::string& message, int code) {
  if (!AsksForOneTrace(message)) {
    Print(stderr, "trainprof {}: {}\n", command, message);
    return code;
  }
  // A list, with a line a trace.
  PrintText(stderr, fmt::format("trainprof {}: {}\n", command, message));
  return kExitUsage;
}

}  // namespace trainprof
