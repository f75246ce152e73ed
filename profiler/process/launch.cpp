// Which launch this process belongs to, by what Slurm, torchrun and the process tree say.
#include "profiler/process/launch.h"

#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "profiler/process/process_info.h"
#include "trace/recording/wire/process_place.h"

namespace trainprof {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

std::string JobName() {
  if (const std::string job = Variable("SLURM_JOB_ID"); !job.empty()) return job;
  // torchrun's --rdzv-id; "none" is its default.
  const std::string run = Variable("TORCHELASTIC_RUN_ID");
  return run == "none" ? std::string() : run;
}

// A job's name becomes part of a file name.
std::string Sanitised(std::string name) {
  for (char& c : name) {
    const bool harmless = std::isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                          (c == '.' && &c != name.data());
    if (!harmless) c = '_';
  }
  return name.substr(0, 128);
}

// Seconds since 1970 at which the machine booted: the same number for every process that asks.
long BootTime() {
  std::ifstream stat("/proc/stat");
  std::string line;
  while (std::getline(stat, line)) {
    if (line.rfind("btime ", 0) == 0) return std::strtol(line.c_str() + 6, nullptr, 10);
  }
  return 0;
}

std::string Utc(std::time_t seconds) {
  return fmt::format("{:%Y%m%dT%H%M%SZ}", fmt::gmtime(seconds));
}

std::string ParentIdentity() {
  const auto parent = ReadProcessInfo(getppid());
  // The first process of a container sees no parent.
  if (!parent) return fmt::format("parent {} started 0", getppid());
  // In another container a process of that pid may have begun in the same hundredth of a second.
  std::error_code error;
  const std::string place = std::filesystem::read_symlink(recording::kPidNamespaceLink, error);
  return fmt::format("parent {} started {} in {}", getppid(), parent->start_ticks, place);
}

// On one machine all ranks have one parent, which no other launch has. Across machines parents
// differ, and what the scheduler says has to do.
bool IsOnOneMachine() {
  return !Variable("WORLD_SIZE").empty() && Variable("WORLD_SIZE") == Variable("LOCAL_WORLD_SIZE");
}

// Where the ranks of several containers or machines meet, when no launcher says whose they are (as
// in Kubernetes); "" when they do not.
std::string Rendezvous() {
  const std::string address = Variable("MASTER_ADDR");
  const bool is_local = address == "localhost" || address == "::1" || address.rfind("127.", 0) == 0;
  const long ranks = std::strtol(Variable("WORLD_SIZE").c_str(), nullptr, 10);
  if (address.empty() || is_local || ranks < 2 || IsOnOneMachine()) return {};
  return fmt::format("{} ranks at {}:{}", ranks, address, Variable("MASTER_PORT"));
}

}  // namespace

std::string LaunchIdentity() {
  std::string identity;
  if (const std::string job = Variable("SLURM_JOB_ID"); !job.empty()) {
    identity += fmt::format("slurm {} step {} restart {};", job, Variable("SLURM_STEP_ID"),
                            Variable("SLURM_RESTART_COUNT"));
  }
  if (const std::string run = Variable("TORCHELASTIC_RUN_ID"); !run.empty()) {
    identity += fmt::format("torchrun {} {}:{} restart {};", run, Variable("MASTER_ADDR"),
                            Variable("MASTER_PORT"), Variable("TORCHELASTIC_RESTART_COUNT"));
  }
  if (const std::string ranks = Rendezvous(); identity.empty() && !ranks.empty()) {
    return ranks + ";";
  }
  if (identity.empty() || IsOnOneMachine()) {
    identity += fmt::format("{} port {};", ParentIdentity(), Variable("MASTER_PORT"));
  }
  return identity;
}

std::string JobIdentity() {
  // A requeued job keeps its number and has another parent.
  if (const std::string job = Variable("SLURM_JOB_ID"); !job.empty()) {
    return fmt::format("slurm {} step {};", job, Variable("SLURM_STEP_ID"));
  }
  const std::string run = Variable("TORCHELASTIC_RUN_ID");
  if (const std::string ranks = Rendezvous(); run.empty() && !ranks.empty()) return ranks + ";";
  if (run.empty() || run == "none" || IsOnOneMachine()) return ParentIdentity() + ";";
  return fmt::format("torchrun {} {};", run, Variable("MASTER_ADDR"));
}

bool IsLaterAttempt() {
  for (const char* name : {"TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"}) {
    if (std::strtol(Variable(name).c_str(), nullptr, 10) > 0) return true;
  }
  return false;
}

std::string DefaultRunName(int rank) {
  if (const std::string job = JobName(); !job.empty()) return "trainprof-" + Sanitised(job);
  const auto parent = ReadProcessInfo(getppid());
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  if (rank < 0 || !parent || ticks_per_second <= 0) {
    return "trainprof-" + Utc(std::time(nullptr));
  }
  const auto uptime = parent->start_ticks / static_cast<uint64_t>(ticks_per_second);
  std::string name = "trainprof-" + Utc(BootTime() + static_cast<std::time_t>(uptime));
  if (const std::string port = Variable("MASTER_PORT"); !port.empty()) {
    name += "-p" + Sanitised(port);
  }
  return name;
}

}  // namespace trainprof
