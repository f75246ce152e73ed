#include "trace/io/write_all.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace trainprof {
namespace {

// While it lives, a write past the file size limit fails with EFBIG. The signal goes to the thread
// that writes: it is held back there and taken away, so that no handler of the process is touched.
class SizeLimitSignalHeld {
 public:
  SizeLimitSignalHeld() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &signal_, &before_);
  }
  SizeLimitSignalHeld(const SizeLimitSignalHeld&) = delete;
  SizeLimitSignalHeld& operator=(const SizeLimitSignalHeld&) = delete;
  ~SizeLimitSignalHeld() {
    if (raised) {
      const timespec at_once{};
      sigtimedwait(&signal_, nullptr, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  bool raised = false;

 private:
  sigset_t signal_;
  sigset_t before_;
};

}  // namespace

int WriteAll(int fd, std::string_view bytes, uint64_t* written) {
  SizeLimitSignalHeld held;
  while (!bytes.empty()) {
    const ssize_t wrote = write(fd, bytes.data(), bytes.size());
    if (wrote >= 0) {
      if (written != nullptr) *written += static_cast<uint64_t>(wrote);
      bytes.remove_prefix(static_cast<size_t>(wrote));
      continue;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd room{.fd = fd, .events = POLLOUT, .revents = 0};
      poll(&room, 1, -1);
    } else if (errno != EINTR) {
      held.raised = errno == EFBIG;
      return errno;
    }
  }
  return 0;
}

const char* WhatToDoAboutWriting(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space or choose another folder";
    case EFBIG:
      return "; the limit on file sizes (ulimit -f) is too low for it";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; choose a folder you may write to";
    default:
      return "";
  }
}

}  // namespace trainprof
