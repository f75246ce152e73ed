// Which of the traces that are being made gets what a sampler saw of each process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/recording/files/host_file.h"

namespace trainprof::recording {

// A trace that is being made, as far as host samples are concerned.
struct HostAudience {
  std::string boot_id;
  int rank = -1;
  std::vector<std::pair<int64_t, uint64_t>> processes;  // pid, start in ticks since boot
};

inline constexpr size_t kNobody = SIZE_MAX;

// Tells which audience each entity of a file belongs to. A process is given before its children.
class HostOwnership {
 public:
  // `machine`: who gets what is the machine's.
  HostOwnership(const std::vector<HostAudience>& audiences, const HostFile& file, size_t machine)
      : audiences_(audiences), file_(file), machine_(machine), others_(machine) {
    for (size_t i = 0; i < audiences.size(); ++i) {
      if (audiences[i].boot_id != file.boot_id()) continue;
      if (file.header.rank >= 0 && audiences[i].rank == file.header.rank) others_ = i;
    }
  }

  size_t OwnerOf(const HostEntity& entity) {
    if (entity.kind != HostEntityKind::kProcess) return machine_;
    size_t owner = Recorder(entity);
    if (owner == kNobody) {
      const auto parent = owner_of_pid_.find(entity.parent);
      owner = parent == owner_of_pid_.end() ? others_ : parent->second;
    }
    owner_of_pid_[entity.number] = owner;
    return owner;
  }

 private:
  size_t Recorder(const HostEntity& entity) const {
    const std::pair key(entity.number, entity.start_ticks);
    for (size_t i = 0; i < audiences_.size(); ++i) {
      const auto& processes = audiences_[i].processes;
      if (audiences_[i].boot_id == file_.boot_id() &&
          std::find(processes.begin(), processes.end(), key) != processes.end()) {
        return i;
      }
    }
    return kNobody;
  }

  const std::vector<HostAudience>& audiences_;
  const HostFile& file_;
  size_t machine_;
  size_t others_;  // of processes that nobody's ancestor recorded
  std::unordered_map<int64_t, size_t> owner_of_pid_;
};

}  // namespace trainprof::recording
