// Entry point: options, data, training. Exit codes: 0 trained, 1 something failed, 2 usage error.
#include <malloc.h>

#include <cstdio>
#include <exception>

#include "instrumented_trainer/image_store.h"
#include "instrumented_trainer/options.h"
#include "instrumented_trainer/training.h"

namespace {

// Else each step gives the memory of its tensors back to the kernel, which clears some 3000 pages in the next one: 5 % of
// a step on the CPU on one machine and much more on others, and what of it falls to a phase depends on all the others.
void KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

}  // namespace

int main(int argc, char** argv) {
  KeepFreedMemory();
  const trainer::ParsedOptions parsed = trainer::ParseOptions(argc, argv);
  if (!parsed.options) return parsed.exit_code;
  const trainer::Options& options = *parsed.options;
  try {
    trainer::RequireDevice(options);
    trainer::ImageStore store =
        trainer::OpenOrDraw(options.data, {options.samples, options.stored_size, options.seed});
    std::printf("data %s (%s)\n", store.folder.c_str(), store.drawn_now ? "drawn now" : "reused");
    std::fflush(stdout);
    trainer::Train(options, std::move(store));
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "instrumented_trainer: %s\n", error.what());
    return 1;
  }
  return 0;
}
