#include "tests/collectors/nvtx_program.h"

#include <cstdio>
#include <map>

int main(int argc, char** argv) {
  using namespace nvtx_program;
  const std::map<std::string, int (*)(const Arguments&)> modes = {{"everything", Everything},
                                                                  {"numbered", Numbered},
                                                                  {"bulk", Bulk},
                                                                  {"paced", Paced},
                                                                  {"threads", Threads},
                                                                  {"chunk_ends", ChunkEnds},
                                                                  {"short", ShortThreads},
                                                                  {"fork", Fork},
                                                                  {"rawfork", RawFork},
                                                                  {"exec", Exec},
                                                                  {"spawned", Spawned},
                                                                  {"steps", Steps},
                                                                  {"workingsteps", WorkingSteps},
                                                                  {"capture", Capture},
                                                                  {"signals", Signals},
                                                                  {"smallstacks", SmallStacks},
                                                                  {"closeall", CloseAll},
                                                                  {"late", Late},
                                                                  {"deep", Deep},
                                                                  {"long", Long},
                                                                  {"names", Names},
                                                                  {"random", Random},
                                                                  {"libraries", Libraries},
                                                                  {"hooks", HookRanges},
                                                                  {"tasks", Tasks},
                                                                  {"hookedsteps", HookedSteps},
                                                                  {"hooksfork", HooksFork}};
  const Arguments arguments(argv + 1, argv + argc);
  const auto mode = arguments.empty() ? modes.end() : modes.find(arguments[0]);
  if (mode == modes.end()) {
    std::fprintf(stderr, "usage: nvtx_program MODE [arguments]\n");
    return 2;
  }
  return mode->second(Arguments(arguments.begin() + 1, arguments.end()));
}
