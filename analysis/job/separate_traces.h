// Which traces of a folder are the ranks of one job. A rank is one by what its trace says
// (distributedInfo), else by its file's name ("rank3", "worker0" to "worker7"); no number is made
// up. Two windows of one process, or fifteen experiments, are separate traces: the user must name
// one.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

// True when an error lists separate traces and asks for one of them: a matter of usage.
bool AsksForOneTrace(const std::string& error);

// The rank that a file's name says, by each name; files of one folder are looked at together.
std::map<std::filesystem::path, int64_t> RanksOfNames(std::span<const std::filesystem::path> files);

// Passes traces on as long as they can be ranks of one job.
class RankGate {
 public:
  using Visit = std::function<Result<void>(Trace trace)>;

  RankGate(std::filesystem::path folder, std::span<const std::filesystem::path> files, Visit visit);

  // The next trace; `file` is one of `files`. Fails with the question, or as `visit` does.
  Result<void> Pass(const std::filesystem::path& file, Trace trace);
  // After the last one: a trace that says no rank and is alone.
  Result<void> Finish();

 private:
  Error Question() const;

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> files_;
  Visit visit_;
  std::map<std::filesystem::path, int64_t> named_;
  std::map<std::filesystem::path, std::string> said_;  // of files that were read: "rank 3"
  std::map<int64_t, std::filesystem::path> taken_;
  std::optional<Trace> held_;  // says no rank: passed on only when no other comes
};

}  // namespace trainprof
