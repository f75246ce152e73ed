#include "collectors/machine/cgroup_source.h"

#include <algorithm>
#include <string_view>

namespace trainprof {
namespace {

namespace fs = std::filesystem;
using recording::CgroupMetric;
using recording::HostEncoder;
using recording::HostEntityKind;

// Version 1 writes "no limit" as the largest multiple of a page below 2^63.
constexpr uint64_t kNoMemoryLimit = uint64_t{1} << 60;

std::string ReadOnce(const fs::path& path) {
  std::string buffer;
  const auto text = ProcFile(path).Read(buffer);
  return text ? std::string(*text) : std::string();
}

bool IsThere(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The group's path in a hierarchy, of /proc/PID/cgroup: "4:cpu,cpuacct:/a/b" for a controller of
// version 1, "0::/a/b" (no controller) for version 2. Nothing when it has no such line.
std::optional<std::string> GroupOf(std::string_view text, std::string_view controller) {
  std::optional<std::string> group;
  ForEachLine(text, [&](std::string_view line) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) return;
    std::string_view names = line.substr(first + 1, second - first - 1);
    if (controller.empty() && names.empty()) group = line.substr(second + 1);
    while (!controller.empty() && !names.empty()) {
      const size_t comma = names.find(',');
      if (names.substr(0, comma) == controller) group = line.substr(second + 1);
      names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    }
  });
  return group;
}

// The group's folder and those around it, innermost first. A container that is told the host's path
// sees its own group as the hierarchy's root.
std::vector<fs::path> FoldersAround(const fs::path& hierarchy, const std::string& group) {
  std::vector<fs::path> folders;
  fs::path inner = fs::path(group).relative_path();
  while (!inner.empty()) {
    if (IsThere(hierarchy / inner)) folders.push_back(hierarchy / inner);
    inner = inner.parent_path();
  }
  folders.push_back(hierarchy);
  return folders;
}

// Cores in thousandths from "quota period" ("200000 100000", "max 100000").
std::optional<uint64_t> CoresOf(std::string_view text) {
  Words words(text);
  const auto quota = FirstNumber(words.Next());
  const auto period = FirstNumber(words.Next());
  if (!quota || !period || *period == 0) return std::nullopt;
  return *quota * 1000 / *period;
}

// Version 1 has a file for each of the two.
std::optional<uint64_t> CoresOfVersion1(const fs::path& folder) {
  return CoresOf(ReadOnce(folder / "cpu.cfs_quota_us") + " " +
                 ReadOnce(folder / "cpu.cfs_period_us"));
}

// The folder whose limit is tightest; the innermost one where nothing limits.
template <class LimitOf>
fs::path Tightest(const std::vector<fs::path>& folders, LimitOf limit_of) {
  fs::path tightest = folders.front();
  uint64_t least = UINT64_MAX;
  for (const fs::path& folder : folders) {
    const uint64_t limit = limit_of(folder).value_or(UINT64_MAX);
    if (limit >= least) continue;
    least = limit;
    tightest = folder;
  }
  return tightest;
}

}  // namespace

CgroupSource::CgroupSource(const fs::path& root, pid_t program) {
  const std::string text = ReadOnce(root / "proc" / std::to_string(program) / "cgroup");
  const fs::path mount = root / "sys/fs/cgroup";
  const fs::path unified =
      IsThere(mount / "cgroup.controllers") ? mount : mount / "unified";  // hybrid systems
  if (const auto group = GroupOf(text, "");
      group && IsThere(unified / "cgroup.controllers") && !GroupOf(text, "cpu")) {
    name_ = *group;
    const std::vector<fs::path> folders = FoldersAround(unified, *group);
    const auto cpu_limit = [](const fs::path& folder) {
      return CoresOf(ReadOnce(folder / "cpu.max"));
    };
    const auto memory_limit = [](const fs::path& folder) {
      return FirstNumber(ReadOnce(folder / "memory.max"));
    };
    ReadVersion2(Tightest(folders, cpu_limit), Tightest(folders, memory_limit));
    return;
  }
  const auto folders_of = [&](const char* controller) {
    const auto group = GroupOf(text, controller);
    if (group && name_.size() < group->size()) name_ = *group;
    return group ? FoldersAround(mount / controller, *group)
                 : std::vector<fs::path>{mount / controller};
  };
  const auto memory_limit = [](const fs::path& folder) {
    return FirstNumber(ReadOnce(folder / "memory.limit_in_bytes"));
  };
  ReadVersion1(Tightest(folders_of("cpu"), CoresOfVersion1), folders_of("cpuacct").front(),
               Tightest(folders_of("memory"), memory_limit));
}

void CgroupSource::Read(const fs::path& path, decltype(Reading::use) use) {
  if (IsThere(path)) readings_.push_back({ProcFile(path), std::move(use)});
}

void CgroupSource::ReadVersion2(const fs::path& cpu, const fs::path& memory) {
  Read(cpu / "cpu.stat", [](std::string_view text, uint32_t id, HostEncoder& out) {
    const auto observe = [&](const char* key, CgroupMetric metric) {
      if (const auto value = NumberAfter(text, key)) out.Observe(id, metric, *value);
    };
    observe("usage_usec", CgroupMetric::kUsage);
    observe("throttled_usec", CgroupMetric::kThrottled);
    observe("nr_throttled", CgroupMetric::kThrottledPeriods);
  });
  Read(cpu / "cpu.max", [](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto cores = CoresOf(text)) out.Observe(id, CgroupMetric::kCpuLimit, *cores);
  });
  const auto bytes = [](CgroupMetric metric) {
    return [metric](std::string_view text, uint32_t id, HostEncoder& out) {
      if (const auto value = FirstNumber(text)) out.Observe(id, metric, *value);
    };
  };
  Read(memory / "memory.current", bytes(CgroupMetric::kMemory));
  Read(memory / "memory.max", bytes(CgroupMetric::kMemoryLimit));
  Read(memory / "memory.events", [](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto kills = NumberAfter(text, "oom_kill")) {
      out.Observe(id, CgroupMetric::kOomKills, *kills);
    }
  });
}

void CgroupSource::ReadVersion1(const fs::path& cpu, const fs::path& usage,
                                const fs::path& memory) {
  const auto cores = CoresOfVersion1(cpu);
  Read(cpu / "cpu.stat", [cores](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto time = NumberAfter(text, "throttled_time")) {
      out.Observe(id, CgroupMetric::kThrottled, *time / 1000);  // ns
    }
    if (const auto periods = NumberAfter(text, "nr_throttled")) {
      out.Observe(id, CgroupMetric::kThrottledPeriods, *periods);
    }
    if (cores) out.Observe(id, CgroupMetric::kCpuLimit, *cores);
  });
  Read(usage / "cpuacct.usage", [](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto ns = FirstNumber(text)) out.Observe(id, CgroupMetric::kUsage, *ns / 1000);
  });
  Read(memory / "memory.usage_in_bytes", [](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto value = FirstNumber(text)) out.Observe(id, CgroupMetric::kMemory, *value);
  });
  Read(memory / "memory.limit_in_bytes", [](std::string_view text, uint32_t id, HostEncoder& out) {
    const auto value = FirstNumber(text);
    if (value && *value < kNoMemoryLimit) out.Observe(id, CgroupMetric::kMemoryLimit, *value);
  });
  Read(memory / "memory.oom_control", [](std::string_view text, uint32_t id, HostEncoder& out) {
    if (const auto kills = NumberAfter(text, "oom_kill")) {
      out.Observe(id, CgroupMetric::kOomKills, *kills);
    }
  });
}

void CgroupSource::Sample(HostEncoder& out) {
  for (Reading& reading : readings_) {
    const auto text = reading.file.Read(buffer_);
    if (!text) continue;
    if (!id_) id_ = out.Add({.kind = HostEntityKind::kCgroup, .text = name_});
    reading.use(*text, *id_, out);
  }
}

}  // namespace trainprof
