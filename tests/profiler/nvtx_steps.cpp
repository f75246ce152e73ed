// A profiled program for the tests: usage nvtx_steps STEPS MILLISECONDS [FORKS]. Each step is an
// NVTX range "step" around "data" (half of the time) and "forward"; after each it prints the number
// of ranges that it has pushed so far. FORKS children do the same at the same time.
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 3;
  const int milliseconds = argc > 2 ? std::atoi(argv[2]) : 1;
  for (int forks = argc > 3 ? std::atoi(argv[3]) : 0; forks > 0; --forks) {
    if (fork() == 0) break;
  }
  for (int step = 1; step <= steps; ++step) {
    nvtxRangePushA("step");
    nvtxRangePushA("data");
    usleep(static_cast<useconds_t>(milliseconds) * 500);
    nvtxRangePop();
    nvtxRangePushA("forward");
    usleep(static_cast<useconds_t>(milliseconds) * 500);
    nvtxRangePop();
    nvtxRangePop();
    std::printf("%d\n", 3 * step);
    std::fflush(stdout);
  }
  while (wait(nullptr) > 0) {
  }
  return 0;
}
