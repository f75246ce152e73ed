#include "trace/io/write_all.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "trace/base/held_signals.h"

namespace trainprof {

int WriteAll(int fd, std::string_view bytes, uint64_t* written) {
  // Past the size limit a write then fails with EFBIG, and no handler of the process is touched.
  HeldSignals held(SignalBit(SIGXFSZ));
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
      const int error = errno;
      if (error == EFBIG) held.Swallow();
      return error;
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
