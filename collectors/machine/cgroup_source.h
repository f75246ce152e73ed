// The control group that bounds the program: how much CPU it was denied, how much memory it has
// left. Version 1 and 2; in a container too, whose own group is the root that it sees.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "collectors/machine/proc_file.h"
#include "trace/recording/files/host_encoder.h"

namespace trainprof {

class CgroupSource {
 public:
  // Reads root/proc/PID/cgroup once, then files below root/sys/fs/cgroup. Of the program's group
  // and those around it the one with the tightest limit is looked at.
  CgroupSource(const std::filesystem::path& root, pid_t program);

  void Sample(recording::HostEncoder& out);

 private:
  struct Reading {
    ProcFile file;
    // Observes what the text says.
    std::function<void(std::string_view, uint32_t id, recording::HostEncoder&)> use;
  };
  void Read(const std::filesystem::path& path, decltype(Reading::use) use);
  void ReadVersion1(const std::filesystem::path& cpu, const std::filesystem::path& usage,
                    const std::filesystem::path& memory);
  void ReadVersion2(const std::filesystem::path& cpu, const std::filesystem::path& memory);

  std::string name_;
  std::vector<Reading> readings_;
  std::optional<uint32_t> id_;
  std::string buffer_;
};

}  // namespace trainprof
