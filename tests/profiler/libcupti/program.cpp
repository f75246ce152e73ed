// A program that uses CUDA, and that minds its children: it says how many signals of their ends
// came, and what wait() finds. Exit code 5, or 7 where cuInit fails.
#include <fcntl.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstdio>

extern "C" int cuInit(unsigned);

namespace {
volatile std::sig_atomic_t g_children = 0;
void CountChild(int) { g_children = g_children + 1; }
}  // namespace

int main() {
  std::signal(SIGCHLD, CountChild);
  const int before = open("/dev/null", O_RDONLY);
  const bool works = cuInit(0) == 0;
  const pid_t child = waitpid(-1, nullptr, WNOHANG);
  std::printf("output: %d signals, %s, descriptor %d\n", static_cast<int>(g_children),
              child < 0 && errno == ECHILD ? "no child" : "a child", before);
  return works ? 5 : 7;
}
