// The processes of the run, from /proc/PID: the program and all that descend from it, found by
// their parents. One that was adopted by init after we saw it stays ours.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "collectors/machine/proc_file.h"
#include "trace/recording/files/host_encoder.h"

namespace trainprof {

class ProcessSource {
 public:
  // Trees with more processes than this are sampled in part.
  static constexpr size_t kMostProcesses = 2000;

  // Reads below root/proc; `program` is the root of the tree.
  ProcessSource(std::filesystem::path root, pid_t program);

  // Looks for new processes and for those that are gone. O(processes of the machine).
  void Scan(recording::HostEncoder& out);
  // CPU time, threads, memory, page faults.
  void SampleStat(recording::HostEncoder& out);
  // Context switches, bytes read and written: files that cost more.
  void SampleRest(recording::HostEncoder& out);

  // As they were found: a parent comes before its children.
  std::vector<recording::HostEntity> processes() const;

 private:
  struct Candidate {
    pid_t pid;
    pid_t parent;
    uint64_t start_ticks;
    std::string command;
  };
  struct Process {
    Process(const std::filesystem::path& folder, const Candidate& candidate, uint32_t its_id);
    pid_t pid;
    pid_t parent;
    uint32_t id;
    uint64_t start_ticks;
    std::string command;
    ProcFile stat;
    ProcFile status;
    ProcFile io;
  };
  std::vector<pid_t> ListPids() const;
  void SayIfWiped(pid_t pid, const std::string& command, recording::HostEncoder& out) const;
  std::vector<Candidate> NewProcesses(const std::vector<pid_t>& pids);
  bool AddChildren(std::vector<Candidate>& candidates, recording::HostEncoder& out);
  bool ObserveStat(Process& process, std::string_view text, recording::HostEncoder& out);
  std::map<pid_t, Process>::iterator End(std::map<pid_t, Process>::iterator it,
                                         recording::HostEncoder& out);

  std::filesystem::path proc_;
  pid_t program_;
  uint64_t page_bytes_;
  std::map<pid_t, Process> tree_;
  std::unordered_set<pid_t> strangers_;  // pids that are not of the tree
  uint32_t scans_ = 0;
  bool said_too_many_ = false;
  std::string buffer_;
};

}  // namespace trainprof
