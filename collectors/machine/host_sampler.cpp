#include "collectors/machine/host_sampler.h"

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "collectors/machine/sampling.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof {
namespace {

recording::HostHeader HeaderOf(const SamplerSettings& settings) {
  recording::HostHeader header{};
  header.ticks_per_second = static_cast<uint32_t>(sysconf(_SC_CLK_TCK));
  header.rank = settings.rank;
  header.pid = getpid();
  header.program_pid = settings.program;
  header.cores = static_cast<uint32_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  header.opened_monotonic_ns = recording::MonotonicNs();
  header.opened_realtime_ns = recording::ReadClock(CLOCK_REALTIME);
  gethostname(header.host, sizeof header.host - 1);
  std::ifstream boot(settings.root / "proc/sys/kernel/random/boot_id");
  boot.getline(header.boot_id, sizeof header.boot_id);
  return header;
}

}  // namespace

Result<HostSampler> HostSampler::Start(const SamplerSettings& settings) {
  const recording::HostHeader header = HeaderOf(settings);
  const uint64_t bound = recording::HostBound(settings.max_bytes);
  auto host = SampleLog::Create(settings.run_dir, header, bound);
  if (!host.ok()) return Error{host.error()};
  SampleLogs logs{std::move(host).value(), std::nullopt};
  std::vector<std::filesystem::path> files = {logs.host.path()};
  if (settings.stack_hz > 0) {
    auto stacks = SampleLog::Create(settings.run_dir, header, bound, recording::kStacksPrefix);
    if (!stacks.ok()) return Error{stacks.error()};
    logs.stacks.emplace(std::move(stacks).value());
    files.push_back(logs.stacks->path());
  }
  std::vector<int> kept = {logs.host.fd()};
  if (logs.stacks) kept.push_back(logs.stacks->fd());
  if (settings.memory_door >= 0) kept.push_back(settings.memory_door);
  auto process = SideProcess::Start("trainprof-host", std::move(kept), [&](int stop_fd) {
    return SampleUntilStopped(settings, logs, stop_fd);
  });
  if (!process.ok()) return Error{"no host samples: " + process.error()};
  return HostSampler(std::move(process).value(), std::move(files));
}

HostSampler::HostSampler(HostSampler&& other) noexcept = default;
HostSampler& HostSampler::operator=(HostSampler&& other) noexcept = default;
HostSampler::~HostSampler() { Stop(); }

std::string HostSampler::Stop() {
  if (!process_.is_running()) return {};
  const SideProcess::End end = process_.Stop(kStopLimit);
  if (!end.in_time)
    return "host samples: the last one is missing, as the sampler did not end in time";
  if (WIFSIGNALED(end.status)) {
    return std::string("host samples end early: the sampler died of signal ") +
           std::to_string(WTERMSIG(end.status));
  }
  if (WEXITSTATUS(end.status) == 0) return {};
  return WEXITSTATUS(end.status) == SideProcess::kNoRoom
             ? "host samples are incomplete: there was no memory or no thread left for them"
             : "host samples are incomplete: the disk did not take them";
}

}  // namespace trainprof
