// Reads another process's memory without stopping it: by process_vm_readv, or, where that call is
// refused, through /proc/PID/mem, which old rules of containers forget. What is read may change
// meanwhile: whoever reads checks what it got.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace trainprof {

class GivenMemory;

class RemoteMemory {
 public:
  // `given`: may have the process's memory where the system refuses it; must outlive this.
  explicit RemoteMemory(pid_t pid, const GivenMemory* given = nullptr) : pid_(pid), given_(given) {}
  ~RemoteMemory();
  RemoteMemory(const RemoteMemory&) = delete;
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  // False when not all of it can be read; error() says why.
  bool Read(uint64_t address, void* out, size_t bytes);
  template <class T>
  bool Read(uint64_t address, T& out) {
    return Read(address, &out, sizeof out);
  }
  // All of them, in their order: at most kMostPieces. With one system call, or, through the file, one
  // a piece. False when not all of it can be read.
  struct Piece {
    uint64_t address;
    void* out;
    size_t bytes;
  };
  static constexpr size_t kMostPieces = 512;
  bool Read(std::span<const Piece> pieces);
  // `bytes` from each address, one behind the other, with few system calls. Returns how many came:
  // it ends at the first that cannot be read.
  size_t ReadEach(std::span<const uint64_t> addresses, size_t bytes, char* out);

  pid_t pid() const { return pid_; }
  // Of the last Read that failed: EPERM, ENOSYS: not allowed here; ESRCH: it is gone; EFAULT.
  int error() const { return error_; }

 private:
  // Whether the file is to be used from now on: the call has just failed with `error`.
  bool TakeFile(int error);
  bool ReadFile(uint64_t address, void* out, size_t bytes);

  pid_t pid_;
  const GivenMemory* given_;
  int file_ = -1;  // of its memory, where the call is refused
  int error_ = 0;
};

// The error() of a Read in words.
std::string WhyUnreadable(int error);

}  // namespace trainprof
