// The command line: every flag with its explanation and default, and the checks between flags.
#include "instrumented_trainer/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

#include "instrumented_trainer/nvtx_ranges.h"

namespace trainer {
namespace {

constexpr int64_t kResnetWidth = 24;       // channels of the first stage; ResNet-18 has 64
constexpr int64_t kTransformerWidth = 64;  // embedding size; ViT-Tiny has 192

constexpr char kDescription[] =
    "Trains a small image classifier for real, on procedurally drawn shapes, and marks its phases "
    "with NVTX ranges: step, data_wait, h2d_copy, forward, backward, optimizer.";

// Where the data set goes when --data is not given: the user's cache, else the temporary folder.
std::filesystem::path DefaultDataFolder() {
  namespace fs = std::filesystem;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return fs::path(cache) / "instrumented_trainer";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return fs::path(home) / ".cache" / "instrumented_trainer";
  }
  return fs::temp_directory_path() / "instrumented_trainer";
}

void AddTrainingFlags(CLI::App& app, Options& o) {
  const std::map<std::string, Model> models{{"resnet", Model::kResnet},
                                            {"transformer", Model::kTransformer}};
  app.add_option("--model", o.model,
                 "resnet: convolutional, the shape of ResNet-18; transformer: encoder over patches "
                 "of 8x8 pixels (default resnet)")
      ->transform(CLI::CheckedTransformer(models).description("{resnet,transformer}"))
      ->default_str("");
  app.add_option("--device", o.device, "where the model trains")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--steps", o.steps, "how many training steps to take")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}))
      ->capture_default_str();
  app.add_option("--batch", o.batch, "images in a batch")
      ->check(CLI::Range(int64_t{1}, int64_t{65'536}))
      ->capture_default_str();
  app.add_option("--width", o.width,
                 "channels of the first stage (resnet, default 24) or embedding size (transformer, "
                 "default 64, a multiple of 4)")
      ->check(CLI::Range(int64_t{1}, int64_t{4'096}));
  app.add_option("--lr", o.learning_rate, "learning rate of AdamW")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "seeds weights, order and augmentation; same seed, same losses")
      ->capture_default_str();
  app.add_option("--threads", o.threads,
                 "threads inside an operator on the CPU. 1 leaves the other cores to the loader's "
                 "workers, which are threads of this process")
      ->check(CLI::Range(int64_t{1}, int64_t{1'024}))
      ->capture_default_str();
  app.add_option("--log-every", o.log_every, "print the loss every N steps")
      ->check(CLI::Range(int64_t{1}, int64_t{100'000'000}))
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "first steps left out of the means printed at the end")
      ->check(CLI::Range(int64_t{0}, int64_t{100'000'000}))
      ->capture_default_str();
}

void AddDataFlags(CLI::App& app, Options& o) {
  app.add_option("--workers", o.workers,
                 "loader threads that decode and augment ahead; 0: the training thread does it "
                 "itself, between two steps")
      ->check(CLI::Range(int64_t{0}, int64_t{256}))
      ->capture_default_str();
  app.add_option("--data", o.data,
                 "folder of the data set; drawn there once, then reused while --samples, "
                 "--stored-size and --seed stay")
      ->capture_default_str();
  app.add_option("--samples", o.samples, "JPEG files in the data set")
      ->check(CLI::Range(int64_t{1}, int64_t{10'000'000}))
      ->capture_default_str();
  app.add_option("--stored-size", o.stored_size, "pixels per side of the stored JPEG files")
      ->check(CLI::Range(int64_t{32}, int64_t{4'096}))
      ->capture_default_str();
  app.add_option("--image-size", o.image_size, "pixels per side that the model sees")
      ->check(CLI::Range(int64_t{16}, int64_t{1'024}))
      ->capture_default_str();
}

void AddHabitFlags(CLI::App& app, Options& o, std::string& pin_memory, std::string& amp) {
  app.add_option("--pin-memory", pin_memory,
                 "the loader writes batches into page-locked memory, and copies run asynchronously "
                 "(default on with --device cuda, off with cpu)")
      ->check(CLI::IsMember({"on", "off"}))
      ->default_str("");
  app.add_option("--amp", amp, "automatic mixed precision: forward pass in bfloat16")
      ->check(CLI::IsMember({"off", "bf16"}))
      ->capture_default_str();
  app.add_option("--item-every", o.habits.item_every,
                 "habit: read the loss with .item() every N steps; 0: only for log lines")
      ->check(CLI::Range(int64_t{0}, int64_t{100'000'000}))
      ->capture_default_str();
  app.add_flag("--cpu-tensors", o.habits.cpu_tensors,
               "habit: make the input noise and the class weights on the CPU and move them, each "
               "step, instead of making them on the device");
  app.add_flag("--retain-graph", o.habits.retain_graph,
               "habit: keep what backward saved until the loss is released");
  app.add_flag("--keep-graph", o.habits.keep_graph,
               "habit: append each loss to a list without detaching it; memory grows");
}

// What one flag alone cannot tell. Throws CLI::ValidationError.
void CheckTogether(const Options& o) {
  if (o.habits.pin_memory && o.device != "cuda") {
    throw CLI::ValidationError("--pin-memory on", "page-locked memory needs --device cuda");
  }
  if (o.batch > o.samples) {
    throw CLI::ValidationError("--batch", "must not exceed --samples (" +
                                              std::to_string(o.samples) +
                                              "): the last, partial batch is dropped");
  }
  if (o.model == Model::kTransformer && o.image_size % kPatchSize != 0) {
    throw CLI::ValidationError("--image-size",
                               "must be a multiple of the patch size 8 for "
                               "--model transformer");
  }
  if (o.model == Model::kTransformer && EffectiveWidth(o) % kHeads != 0) {
    throw CLI::ValidationError("--width",
                               "must be a multiple of 4, the number of attention heads, "
                               "for --model transformer");
  }
}

}  // namespace

const char* ModelName(Model model) { return model == Model::kResnet ? "resnet" : "transformer"; }

int64_t EffectiveWidth(const Options& options) {
  if (options.width > 0) return options.width;
  return options.model == Model::kResnet ? kResnetWidth : kTransformerWidth;
}

ParsedOptions ParseOptions(int argc, char** argv) {
  Options options;
  options.data = DefaultDataFolder();
  std::string pin_memory;
  std::string amp = "off";
  CLI::App app(kDescription, "instrumented_trainer");
  app.footer(NvtxCompiledIn()
                 ? "NVTX ranges: built in."
                 : "NVTX ranges: NOT built in, the headers were absent at build time.");
  app.get_formatter()->column_width(28);
  // A flag given twice: the last one counts, so that a script's flags can be overridden.
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  AddTrainingFlags(app, options);
  AddDataFlags(app, options);
  AddHabitFlags(app, options, pin_memory, amp);
  try {
    app.parse(argc, argv);
    options.amp_bf16 = amp == "bf16";
    options.habits.pin_memory = pin_memory.empty() ? options.device == "cuda" : pin_memory == "on";
    CheckTogether(options);
  } catch (const CLI::ParseError& error) {
    return {std::nullopt, app.exit(error) == 0 ? 0 : 2};
  }
  return {options, 0};
}

}  // namespace trainer
