// Opening a job, one way for all programs: what a path is, which run is meant where none is named,
// what a killed run left, reading one rank after the other with progress, what is refused and how
// that is said.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trace/base/result.h"
#include "trace/formats/importer.h"
#include "trace/recording/files/run_state.h"
#include "trace/tables/trace.h"

namespace trainprof {

// A path as it is before anything is read.
struct JobSource {
  std::filesystem::path path;
  bool is_recording = false;
  // A run directory or a folder of traces, which should hold all ranks: neither a file nor the
  // folder of one rank.
  bool is_whole = false;
  std::vector<std::filesystem::path> files;  // to read, in this order; none of a recording
  // The program that is recorded still runs: opening the path again may give more.
  bool still_recorded = false;
  recording::RunState run;  // of a recording
  std::string killed;       // HowItWasKilled, where nobody records any more
};

// Fails where there is nothing, and on a folder that holds neither a recording nor a trace.
Result<JobSource> OpenJob(const std::filesystem::path& path);

// `path`, or where it is empty the newest run in the current folder, which `notice` is told of.
// Without one, an error.
Result<std::string> PathOrNewestRun(const std::string& path,
                                    const std::function<void(const std::string&)>& notice);

struct LoadStatus {
  std::string text;     // "reading a.json (3 of 8): 42 %, 310 MB/s, 1.2 million events, 3 s left"
  double share = -1;    // of all that is to read, 0..1; < 0: not known
  uint64_t events = 0;  // of the file or rank that is being read
};

struct LoadOptions {
  // Called about once a megabyte, and at the begin of each file or rank; may be empty.
  std::function<void(const LoadStatus&)> progress;
  // Called with what was done to a recording, for its user to know; may be empty.
  std::function<void(const std::string&)> notice;
  // When it turns true, the work ends within milliseconds, with an error that says "cancelled":
  // reading, what `visit` does with cancel points (trace/base/cancel.h), and analysis.
  const std::atomic<bool>* cancel = nullptr;
  // Of other tools' files. With kOfAnalysis arrows are left out as well, once they have said which
  // call launched what.
  KeptArgs args = KeptArgs::kAll;
  // Steps of our own recordings that are set aside at the front; nothing: Steps::warmup_steps tells.
  std::optional<int> warmup_steps{};
};

using VisitTrace = std::function<Result<void>(Trace trace)>;

// Passes on the traces behind a path, one rank in memory at a time where the source allows (of a folder of trace
// files one a core, where memory allows): a run directory or a rank folder of ours (finished or still running), a trace file of one rank or
// several, or a folder of trace files. Of a run that was killed the buffers of its GPU records are
// made readable first (recover.h). Ranks without a number get that of the one before plus one.
// Stops at the first error of `visit`. Returns what could not be read among the files of a folder.
Result<std::vector<std::string>> VisitTraces(const std::filesystem::path& path,
                                             const LoadOptions& options, const VisitTrace& visit);

// The same traces, all in memory.
Result<std::vector<Trace>> LoadTraces(const std::filesystem::path& path,
                                      const LoadOptions& options);

// Takes away the arrows between tracks, a third of a trace's rows. Which call launched what is a
// column.
void DropArrows(Trace& trace);

// What a job has besides its ranks.
struct JobFacts {
  // Processes that recorded something but neither train nor use a GPU: launchers, loader workers
  // with a folder of their own.
  std::vector<std::string> other_processes;
  std::vector<int64_t> silent_ranks;    // their ranks, where they have one
  Quality elsewhere;                    // what is lost of them
  std::vector<std::string> unreadable;  // errors of files in a folder
};

// Passes the ranks of a job on as soon as each is read; of a recording, processes that do not train
// only at the end, and only when nobody does. Fails when there is no rank, and on the first error
// of `visit`.
Result<JobFacts> VisitJob(const JobSource& source, const LoadOptions& options,
                          const VisitTrace& visit);

// Prints "trainprof COMMAND: message" to standard error and returns the exit code: `code`, or that
// of usage for an error that asks for one trace of several, whose list keeps its lines.
int Fail(const char* command, const std::string& message, int code);

// Work that may need more memory than there is: that is an error of the input then.
Error NotEnoughMemoryFor(const std::filesystem::path& path);
template <class Work>
auto InMemory(const std::filesystem::path& path, Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return NotEnoughMemoryFor(path);
  }
}

}  // namespace trainprof
