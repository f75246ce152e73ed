#include "collectors/core/own_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"

namespace trainprof::collectors {
namespace {

constinit std::atomic<int> g_given_by{0};  // the process; a forked child finds its parent's

int Connect(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strlen(name);
  if (length + 1 > sizeof address.sun_path) return -1;
  memcpy(address.sun_path + 1, name, length);  // abstract: it begins with a zero
  const auto connection = static_cast<int>(
      syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connection < 0) return -1;
  const size_t size = offsetof(sockaddr_un, sun_path) + 1 + length;
  ucred peer{};
  socklen_t peer_size = sizeof peer;
  // Names are anybody's: what listens there must be our own user's.
  if (syscall(SYS_connect, connection, &address, size) != 0 ||
      syscall(SYS_getsockopt, connection, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
      peer.uid != geteuid()) {
    CloseFile(connection);
    return -1;
  }
  return connection;
}

void Send(int connection, int descriptor) {
  char byte = 0;
  iovec data = {&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof descriptor)]{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  syscall(SYS_sendmsg, connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

void GiveOwnMemory() {
  const char* socket = g_runtime.options.memory_socket;
  if (socket[0] == 0 || g_given_by.exchange(ProcessId()) == ProcessId()) return;
  const int saved = errno;
  const int connection = Connect(socket);
  if (connection >= 0) {
    const int memory = OpenFile("/proc/self/mem", O_RDONLY);
    if (memory >= 0) {
      Send(connection, memory);
      CloseFile(memory);
    }
    CloseFile(connection);
  }
  errno = saved;
}

void GiveOwnMemoryAgain() {
  if (g_given_by.load() != 0) GiveOwnMemory();
}

}  // namespace trainprof::collectors
