// The trainprof program. Whatever escapes a command is reported here and ends as exit code 70;
// output that did not reach standard output, as 74.
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "profiler/cli/dispatch.h"
#include "profiler/cli/outputs.h"
#include "trace/base/exit_codes.h"
#include "trace/base/parallel.h"
#include "trace/base/spare_blocks.h"
#include "trace/io/print.h"

int main(int argc, char** argv) {
  using trainprof::Print;
  trainprof::ShareOneHeap();
  trainprof::KeepSpareBlocks();
  try {
    const int code =
        trainprof::cli::Dispatch(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    if (trainprof::StandardOutputError() == 0 || code == trainprof::kExitUnwritable) return code;
    Print(stderr, "trainprof: {}\n", trainprof::cli::StandardOutputFailure());
    return trainprof::kExitUnwritable;
  } catch (const std::bad_alloc&) {
    Print(stderr, "trainprof: there is not enough memory for this input\n");
    return trainprof::kExitUnreadable;
  } catch (const std::exception& error) {
    Print(stderr, "trainprof: internal error: {}\n", error.what());
  } catch (...) {
    Print(stderr, "trainprof: internal error of unknown kind\n");
  }
  return trainprof::kExitInternal;
}
