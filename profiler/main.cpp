// The trainprof program. Whatever escapes a command is reported here and ends as exit code 70.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "profiler/cli/command.h"
#include "profiler/cli/dispatch.h"

int main(int argc, char** argv) {
  try {
    return trainprof::cli::Dispatch(
        std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "trainprof: there is not enough memory for this input\n");
    return trainprof::cli::kExitUnreadable;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "trainprof: internal error: %s\n", error.what());
  } catch (...) {
    std::fprintf(stderr, "trainprof: internal error of unknown kind\n");
  }
  return trainprof::cli::kExitInternal;
}
