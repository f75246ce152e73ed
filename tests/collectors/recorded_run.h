// Runs a test program under the injected library, as `trainprof run` does, and reads what it left.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sanitized.h"
#include "trace/io/side_process.h"
#include "trace/recording/read/reader.h"
#include "trace/recording/seal/sealer.h"
#include "trace/recording/segments/drained_file.h"

namespace trainprof::testing {

class RecordedRun {
 public:
  // A fresh run directory under the system's temporary folder, or under `parent`.
  explicit RecordedRun(uint64_t max_bytes = UINT64_MAX, std::filesystem::path parent = {});
  ~RecordedRun();
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  std::map<std::string, std::string> environment;  // added to the test's own
  std::string program = TEST_PROGRAM;
  int64_t file_size_limit_bytes = -1;  // RLIMIT_FSIZE of the program; -1: none

  // Starts the program with these arguments; its stdout is read by Wait().
  pid_t Start(const std::vector<std::string>& arguments);
  // As the supervisor does while the program runs; call it before Start(), and again after a stop.
  void StartDraining();
  // By SIGKILL, or as the supervisor does.
  void StopDraining(bool kill = false);
  // What has been taken out so far.
  std::vector<recording::DrainedEntry> Drained() const;
  // The exit status as waitpid() gives it.
  int Wait();
  int Run(const std::vector<std::string>& arguments);
  pid_t pid() const { return pid_; }
  const std::string& output() const { return output_; }

  const std::filesystem::path& directory() const { return directory_; }
  std::filesystem::path Scratch(const std::string& name) const { return scratch_ / name; }
  std::vector<recording::RankTrace> Read() const;
  // The only one; fails the test when there is another.
  Trace ReadOne() const;
  uint64_t BytesOfSegments() const;

 private:
  std::filesystem::path scratch_;
  std::filesystem::path directory_;
  std::string output_;
  pid_t pid_ = -1;
  int stdout_ = -1;
  std::optional<SideProcess> drainer_;
};

// How often a program is killed at a random moment, at least.
inline int RandomKills() { return kIsSanitized ? 8 : 100; }

// What the one process of a program recorded that ran with these options (TRAINPROF_OPTIONS).
Trace RecordWith(const std::string& options, const std::vector<std::string>& arguments);

// The first range of that name.
std::optional<Row> FindRange(const Trace& trace, std::string_view name);
// Names of the ranges of a trace, in table order.
std::vector<std::string> RangeNames(const Trace& trace);
int64_t CountRanges(const Trace& trace, std::string_view name);

}  // namespace trainprof::testing
