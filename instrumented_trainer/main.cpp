// Entry point: options, data, training. Exit codes: 0 trained, 1 something failed, 2 usage error.
#include <cstdio>
#include <exception>

#include "instrumented_trainer/image_store.h"
#include "instrumented_trainer/options.h"
#include "instrumented_trainer/training.h"

int main(int argc, char** argv) {
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
