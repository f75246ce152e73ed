// A profiled program for the tests: usage nvtx_steps STEPS MILLISECONDS [FORKS [crash]]. Each step is an
// NVTX range "step" around "data" (half of the time) and "forward"; after the first push and each
// step it prints the number of ranges that it has pushed so far. FORKS children do the same at the
// same time. With "crash" it then faults, and leaves a child behind that does nothing for some seconds, as a loader's
// worker that has not noticed yet.
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

void PrintPushed(int ranges) {
  std::printf("%d\n", ranges);
  std::fflush(stdout);
}

void LeaveAChildAndCrash() {
  constexpr unsigned kSeconds = 4;
  if (fork() == 0) {
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) close(stream);
    sleep(kSeconds);
    _exit(0);
  }
  signal(SIGSEGV, SIG_DFL);  // a sanitizer would exit
  raise(SIGSEGV);
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 3;
  const int milliseconds = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int forks = argc > 3 ? std::atoi(argv[3]) : 0; forks > 0; --forks) {
    if (fork() == 0) break;
  }
  for (int step = 1; step <= steps; ++step) {
    nvtxRangePushA("step");
    if (step == 1) PrintPushed(1);
    nvtxRangePushA("data");
    usleep(static_cast<useconds_t>(milliseconds) * 500);
    nvtxRangePop();
    nvtxRangePushA("forward");
    usleep(static_cast<useconds_t>(milliseconds) * 500);
    nvtxRangePop();
    nvtxRangePop();
    PrintPushed(3 * step);
  }
  if (argc > 4 && std::strcmp(argv[4], "crash") == 0) LeaveAChildAndCrash();
  while (wait(nullptr) > 0) {
  }
  return 0;
}
