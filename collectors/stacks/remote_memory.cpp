#include "collectors/stacks/remote_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "collectors/stacks/given_memory.h"

namespace trainprof {
namespace {

bool IsRefusal(int error) { return error == EPERM || error == EACCES || error == ENOSYS; }

}  // namespace

RemoteMemory::~RemoteMemory() {
  if (file_ >= 0) close(file_);
}

bool RemoteMemory::TakeFile(int error) {
  if (!IsRefusal(error)) return false;
  file_ = open(("/proc/" + std::to_string(pid_) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
  if (file_ < 0 && given_ != nullptr) file_ = given_->DuplicateOf(pid_);
  return file_ >= 0;
}

// The file stands for the program that ran when it was opened: of one that has ended, or become another,
// nothing comes.
bool RemoteMemory::ReadFile(uint64_t address, void* out, size_t bytes) {
  const iovec local = {out, bytes};
  const ssize_t n = preadv(file_, &local, 1, static_cast<off_t>(address));
  if (n == static_cast<ssize_t>(bytes)) return true;
  error_ = n == 0 ? ESRCH : n < 0 && IsRefusal(errno) ? errno : EFAULT;
  return false;
}

bool RemoteMemory::Read(uint64_t address, void* out, size_t bytes) {
  if (file_ >= 0) return ReadFile(address, out, bytes);
  const iovec local = {out, bytes};
  const iovec remote = {reinterpret_cast<void*>(address), bytes};
  const ssize_t n = process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  if (n == static_cast<ssize_t>(bytes)) return true;
  error_ = n < 0 ? errno : EFAULT;
  return TakeFile(error_) && ReadFile(address, out, bytes);
}

bool RemoteMemory::Read(std::span<const Piece> pieces) {
  const auto read_file = [&] {
    return std::all_of(pieces.begin(), pieces.end(), [&](const Piece& piece) {
      return ReadFile(piece.address, piece.out, piece.bytes);
    });
  };
  if (file_ >= 0) return read_file();
  iovec local[kMostPieces];
  iovec remote[kMostPieces];
  size_t wanted = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    local[i] = {pieces[i].out, pieces[i].bytes};
    remote[i] = {reinterpret_cast<void*>(pieces[i].address), pieces[i].bytes};
    wanted += pieces[i].bytes;
  }
  const ssize_t n = process_vm_readv(pid_, local, pieces.size(), remote, pieces.size(), 0);
  if (n == static_cast<ssize_t>(wanted)) return true;
  error_ = n < 0 ? errno : EFAULT;
  return TakeFile(error_) && read_file();
}

std::string WhyUnreadable(int error) {
  if (!IsRefusal(error)) return strerror(error);
  return std::string("reading its memory is not allowed here (") + strerror(error) +
         "): see ptrace_scope, or the container's rules for process_vm_readv";
}

size_t RemoteMemory::ReadEach(std::span<const uint64_t> addresses, size_t bytes, char* out) {
  size_t done = 0;
  while (file_ >= 0 && done < addresses.size()) {
    if (!ReadFile(addresses[done], out + done * bytes, bytes)) return done;
    ++done;
  }
  while (done < addresses.size()) {
    iovec remote[kMostPieces];
    const size_t count = std::min(addresses.size() - done, kMostPieces);
    for (size_t i = 0; i < count; ++i) {
      remote[i] = {reinterpret_cast<void*>(addresses[done + i]), bytes};
    }
    const iovec local = {out + done * bytes, count * bytes};
    const ssize_t n = process_vm_readv(pid_, &local, 1, remote, count, 0);
    if (n < 0) {
      error_ = errno;
      if (TakeFile(error_))
        return done + ReadEach(addresses.subspan(done), bytes, out + done * bytes);
      return done;
    }
    const size_t whole = static_cast<size_t>(n) / bytes;
    done += whole;
    if (whole < count) {
      error_ = EFAULT;
      return done;
    }
  }
  return done;
}

}  // namespace trainprof
