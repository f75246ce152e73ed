// Puts the host sampler's samples on the timeline of the ranks, as counters, and its stacks as samples.
//
// A process's counters go to the trace of the rank that it belongs to: the one that recorded it, or
// recorded its nearest ancestor; what belongs to none (torchrun itself) and what is the machine's
// (CPU, disks, GPUs, cgroup) goes once a host to the trace of its lowest rank, on a process of the
// supervisor's pid that is named after the host.
//
// A counter's value holds from its time to that of the next one of its name and process. Rates are
// of exactly that time; a value that does not change is not said again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/recording/files/host_file.h"
#include "trace/recording/read/host_ownership.h"
#include "trace/tables/quality.h"

namespace trainprof::recording {

class HostSamples {
 public:
  HostSamples() = default;
  // Reads the run's host files. Unreadable ones are counted with the audience that would have got
  // the machine's counters.
  HostSamples(const std::filesystem::path& run_dir, std::vector<HostAudience> audiences);

  // Of a run that recorded nothing else: with one audience, on the machine of first().
  static HostSamples Alone(const std::filesystem::path& run_dir);

  // Of the files that can be read; nullptr where none can.
  const HostFile* first() const { return files_.empty() ? nullptr : &files_.front(); }

  // Adds the counters of one audience (its index) and facts to Trace::environment. Of a file with
  // more samples than a timeline can use every n-th is taken, rates being those of the longer time.
  // `base_monotonic_ns` is time 0 of the trace.
  void AddTo(size_t audience, int64_t base_monotonic_ns, TraceBuilder& builder) const;

 private:
  // Of those that can be read; of the others the error is kept.
  std::vector<HostFile> ReadAll(const std::vector<std::filesystem::path>& paths);
  // Whose the machine's counters of a file are.
  size_t AudienceOf(const HostFile& file) const;
  // fact::kCores and kRanksOnHost, for every rank.
  void AddCores(size_t audience, TraceBuilder& builder) const;

  std::vector<HostAudience> audiences_;
  std::vector<HostFile> files_;
  std::vector<HostFile> stack_files_;
  std::vector<std::string> errors_;
};

}  // namespace trainprof::recording
