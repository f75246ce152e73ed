#include "collectors/machine/process_source.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>

#include "trace/recording/wire/facts.h"

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using recording::HostEncoder;
using recording::HostEntityKind;
using recording::ProcessMetric;

// Files of so many processes stay open; those of more are opened for each reading.
constexpr size_t kMostOpen = 150;
// A stranger's pid may have become that of a child: each is looked at again once in so many scans.
constexpr uint32_t kLookAgainEvery = 64;

// /proc/PID/stat: "pid (command) state ppid ...". The command may hold blanks and parentheses.
struct StatLine {
  std::string_view command;
  uint64_t parent = 0;
  uint64_t minor_faults = 0;
  uint64_t major_faults = 0;
  uint64_t user = 0;
  uint64_t system = 0;
  uint64_t threads = 0;
  uint64_t start_ticks = 0;
  uint64_t resident_pages = 0;
};

std::optional<StatLine> ParseStat(std::string_view text) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  StatLine line;
  line.command = text.substr(open + 1, close - open - 1);
  Words words(text.substr(close + 1));
  words.Skip(1);  // state
  line.parent = words.Number();
  words.Skip(5);  // pgrp to flags
  line.minor_faults = words.Number();
  words.Skip(1);
  line.major_faults = words.Number();
  words.Skip(1);
  line.user = words.Number();
  line.system = words.Number();
  words.Skip(4);  // children's times, priority, nice
  line.threads = words.Number();
  words.Skip(1);
  const std::string_view start = words.Next();
  if (start.empty()) return std::nullopt;  // cut: the file was being written, or is none of /proc's
  line.start_ticks = FirstNumber(start).value_or(0);
  words.Skip(1);
  line.resident_pages = words.Number();
  return line;
}

}  // namespace

ProcessSource::Process::Process(const fs::path& folder, const Candidate& candidate, uint32_t its_id)
    : pid(candidate.pid),
      parent(candidate.parent),
      id(its_id),
      start_ticks(candidate.start_ticks),
      command(candidate.command),
      stat(folder / "stat"),
      status(folder / "status"),
      io(folder / "io") {}

ProcessSource::ProcessSource(fs::path root, pid_t program)
    : proc_(std::move(root) / "proc"),
      program_(program),
      page_bytes_(static_cast<uint64_t>(sysconf(_SC_PAGESIZE))) {}

std::vector<recording::HostEntity> ProcessSource::processes() const {
  std::vector<const Process*> found;
  for (const auto& [pid, process] : tree_) found.push_back(&process);
  std::sort(found.begin(), found.end(),
            [](const Process* a, const Process* b) { return a->id < b->id; });
  std::vector<recording::HostEntity> processes;
  for (const Process* process : found) {
    processes.push_back({HostEntityKind::kProcess, process->pid, process->parent,
                         process->start_ticks, process->command});
  }
  return processes;
}

// readdir, not directory_iterator: no path is made of each entry.
std::vector<pid_t> ProcessSource::ListPids() const {
  std::vector<pid_t> pids;
  DIR* folder = opendir(proc_.c_str());
  if (folder == nullptr) return pids;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    pid_t pid = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error == std::errc() && end == name.data() + name.size()) pids.push_back(pid);
  }
  closedir(folder);
  std::sort(pids.begin(), pids.end());
  return pids;
}

std::vector<ProcessSource::Candidate> ProcessSource::NewProcesses(const std::vector<pid_t>& pids) {
  ++scans_;
  std::unordered_set<pid_t> still_there;
  std::vector<Candidate> candidates;
  for (const pid_t pid : pids) {
    if (tree_.contains(pid)) continue;
    const bool look_again = (static_cast<uint32_t>(pid) + scans_) % kLookAgainEvery == 0;
    if (!look_again && strangers_.contains(pid)) {
      still_there.insert(pid);
      continue;
    }
    const auto text = ProcFile(proc_ / std::to_string(pid) / "stat").Read(buffer_);
    const auto line = text ? ParseStat(*text) : std::nullopt;
    if (!line) continue;  // gone already
    candidates.push_back(
        {pid, static_cast<pid_t>(line->parent), line->start_ticks, std::string(line->command)});
  }
  strangers_ = std::move(still_there);
  return candidates;
}

// Moves those whose parent is in the tree into it. True when there were some.
bool ProcessSource::AddChildren(std::vector<Candidate>& candidates, HostEncoder& out) {
  bool any = false;
  std::erase_if(candidates, [&](const Candidate& candidate) {
    if (candidate.pid != program_ && !tree_.contains(candidate.parent)) return false;
    if (tree_.size() >= kMostProcesses) {
      if (!said_too_many_) {
        out.Fact(fact::kHostProcesses,
                 "more than " + std::to_string(kMostProcesses) + ": the rest is not sampled");
      }
      said_too_many_ = true;
      return false;
    }
    const uint32_t id = out.Add({HostEntityKind::kProcess, candidate.pid, candidate.parent,
                                 candidate.start_ticks, candidate.command});
    tree_.try_emplace(candidate.pid, proc_ / std::to_string(candidate.pid), candidate, id);
    SayIfWiped(candidate.pid, candidate.command, out);
    any = true;
    return true;
  });
  return any;
}

// env -i, sudo and the like take away what tells a process to record. A process that is ending has
// neither an environment nor a command line.
void ProcessSource::SayIfWiped(pid_t pid, const std::string& command, HostEncoder& out) const {
  const fs::path folder = proc_ / std::to_string(pid);
  std::ifstream environ(folder / "environ", std::ios::binary);
  if (!environ) return;  // another user's
  const std::string text{std::istreambuf_iterator<char>(environ), {}};
  if (('\0' + text).find(std::string("\0TRAINPROF_DIR=", 15)) != std::string::npos) return;
  std::ifstream arguments(folder / "cmdline", std::ios::binary);
  if (arguments.peek() == std::ifstream::traits_type::eof()) return;
  out.Fact(fact::kWipedEnvironment, command + " (process " + std::to_string(pid) + ")");
}

std::map<pid_t, ProcessSource::Process>::iterator ProcessSource::End(
    std::map<pid_t, Process>::iterator it, HostEncoder& out) {
  out.End(it->second.id);
  return tree_.erase(it);
}

void ProcessSource::Scan(HostEncoder& out) {
  const std::vector<pid_t> pids = ListPids();
  for (auto it = tree_.begin(); it != tree_.end();) {
    const bool there = std::binary_search(pids.begin(), pids.end(), it->first);
    it = there ? std::next(it) : End(it, out);
  }
  std::vector<Candidate> candidates = NewProcesses(pids);
  while (AddChildren(candidates, out)) {
  }
  for (const Candidate& candidate : candidates) strangers_.insert(candidate.pid);
}

// False when the file is no longer that process's.
bool ProcessSource::ObserveStat(Process& process, std::string_view text, HostEncoder& out) {
  const auto line = ParseStat(text);
  if (!line || line->start_ticks != process.start_ticks) return false;
  if (line->command != process.command) {
    process.command = line->command;
    out.Rename(process.id, process.command);
    SayIfWiped(process.pid, process.command, out);
  }
  out.Observe(process.id, ProcessMetric::kUser, line->user);
  out.Observe(process.id, ProcessMetric::kSystem, line->system);
  out.Observe(process.id, ProcessMetric::kThreads, line->threads);
  out.Observe(process.id, ProcessMetric::kResident, line->resident_pages * page_bytes_);
  out.Observe(process.id, ProcessMetric::kMinorFaults, line->minor_faults);
  out.Observe(process.id, ProcessMetric::kMajorFaults, line->major_faults);
  return true;
}

void ProcessSource::SampleStat(HostEncoder& out) {
  const bool keep_open = tree_.size() <= kMostOpen;
  for (auto it = tree_.begin(); it != tree_.end();) {
    const auto text = it->second.stat.Read(buffer_);
    if (!text || !ObserveStat(it->second, *text, out)) {
      it = End(it, out);
      continue;
    }
    if (!keep_open) it->second.stat.Close();
    ++it;
  }
}

void ProcessSource::SampleRest(HostEncoder& out) {
  const bool keep_open = tree_.size() <= kMostOpen;
  for (auto& [pid, process] : tree_) {
    const auto observe = [&, id = process.id](std::string_view text, const char* key,
                                              ProcessMetric metric) {
      if (const auto value = NumberAfter(text, key)) out.Observe(id, metric, *value);
    };
    if (const auto text = process.status.Read(buffer_)) {
      observe(*text, "voluntary_ctxt_switches", ProcessMetric::kVoluntary);
      observe(*text, "nonvoluntary_ctxt_switches", ProcessMetric::kInvoluntary);
    }
    if (const auto text = process.io.Read(buffer_)) {  // another user's is not readable
      observe(*text, "read_bytes", ProcessMetric::kReadStorage);
      observe(*text, "write_bytes", ProcessMetric::kWrittenStorage);
      observe(*text, "rchar", ProcessMetric::kReadAny);
    }
    if (keep_open) continue;
    process.status.Close();
    process.io.Close();
  }
}

}  // namespace trainprof
