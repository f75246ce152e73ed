// What the user asked for on the command line. No LibTorch in here: parsing stays quick to build.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace trainer {

// Habits that slow training down, each a switch, so that a run can be measured with and without it.
// The defaults are the good habits.
struct Habits {
  bool pin_memory = false;    // the loader writes batches into page-locked memory (CUDA only)
  int64_t item_every = 0;     // loss.item() every N steps; 0: only where a log line needs it
  bool cpu_tensors = false;   // small constants are made on the CPU and moved, each step
  bool retain_graph = false;  // backward(retain_graph=true)
  bool keep_graph = false;    // the losses are collected undetached, with their graphs
};

enum class Model { kResnet, kTransformer };
inline constexpr int64_t kHeads = 4;  // the transformer's

struct Options {
  std::string device = "cpu";
  Model model = Model::kResnet;
  int64_t workers = 2;
  int64_t batch = 32;
  int64_t steps = 60;
  int64_t width = 0;          // 0: the model's default, see EffectiveWidth
  int64_t image_size = 64;    // pixels per side that the model sees
  int64_t stored_size = 448;  // pixels per side of the stored JPEG files
  int64_t samples = 768;
  uint64_t seed = 1;
  int64_t threads = 1;
  double learning_rate = 1e-3;
  int64_t log_every = 10;
  int64_t warmup = 5;
  bool amp_bf16 = false;
  std::filesystem::path data;
  Habits habits;
};

// The image side must be a multiple of this for the transformer.
inline constexpr int64_t kPatchSize = 8;

const char* ModelName(Model model);
int64_t EffectiveWidth(const Options& options);

// Reads the command line. Returns the options, or the exit code where the program must end now: 0
// after --help (printed to stdout), 2 for a usage error (printed to stderr).
struct ParsedOptions {
  std::optional<Options> options;
  int exit_code = 0;
};
ParsedOptions ParseOptions(int argc, char** argv);

}  // namespace trainer
