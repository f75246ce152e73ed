// Memory that processes of the run have handed to us, where the system refuses that we read it
// (Yama's ptrace_scope, a process that may not be dumped): each sends a descriptor of its own
// /proc/self/mem (collectors/core/own_memory.h).
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace trainprof {

// Whether of two processes that this one starts the first may read the other's memory. Forks.
bool MayReadSiblings();

// Where they are handed in. Closes with its owner.
class MemoryDoor {
 public:
  // nullopt: the system has no such sockets.
  static std::optional<MemoryDoor> Open();
  MemoryDoor(MemoryDoor&& other) noexcept;
  MemoryDoor& operator=(MemoryDoor&& other) noexcept;
  ~MemoryDoor();

  const std::string& name() const { return name_; }
  int fd() const { return fd_; }

 private:
  MemoryDoor(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}
  std::string name_;
  int fd_;
};

class GivenMemory {
 public:
  // `door`: a listening socket, not ours to close; -1: there is none, and nothing comes.
  explicit GivenMemory(int door) : door_(door) {}
  ~GivenMemory();
  GivenMemory(const GivenMemory&) = delete;
  GivenMemory& operator=(const GivenMemory&) = delete;

  bool is_open() const { return door_ >= 0; }
  // Takes what was handed in meanwhile by processes of our own user; their numbers.
  std::vector<pid_t> Accept();
  // A descriptor of its own for the caller, or -1.
  int DuplicateOf(pid_t pid) const;
  void Forget(pid_t pid);

 private:
  int door_;
  std::map<pid_t, int> files_;
};

}  // namespace trainprof
