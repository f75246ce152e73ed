// Drives the trainer as a user does: command line in, exit code, output and files out.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr together
};

Outcome RunTrainer(const std::string& arguments) {
  const std::string command = std::string("'") + TRAINER_BINARY + "' " + arguments + " 2>&1";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return outcome;
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    outcome.output.append(buffer, n);
  }
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

std::vector<std::string> Lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The losses of the "step N loss X" lines, in order.
std::vector<double> Losses(const std::string& output) {
  std::vector<double> losses;
  for (const std::string& line : Lines(output)) {
    int step = 0;
    double loss = 0;
    if (std::sscanf(line.c_str(), "step %d loss %lf ", &step, &loss) == 2) losses.push_back(loss);
  }
  return losses;
}

// The explanation of a flag in the help text: what follows the flag's own column, on its line or
// the next one. Empty where the flag has none.
std::string Explanation(const std::string& help, const std::string& flag) {
  constexpr size_t kColumn = 28;
  const std::vector<std::string> lines = Lines(help);
  for (size_t i = 0; i + 1 < lines.size(); ++i) {
    if (lines[i].rfind("  " + flag + " ", 0) != 0) continue;
    const bool below = lines[i + 1].rfind(std::string(kColumn, ' '), 0) == 0;
    const std::string& line = below ? lines[i + 1] : lines[i];
    return line.size() > kColumn ? line.substr(kColumn) : "";
  }
  return "";
}

double Mean(const std::vector<double>& values, size_t begin, size_t count) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return std::accumulate(first, first + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

class InstrumentedTrainer : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "trainer-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  // A small data set and network: seconds instead of minutes.
  std::string Small(const std::string& more) const {
    return "--data '" + folder_.string() +
           "' --samples 64 --stored-size 96 --image-size 32 --batch 16 --width 8 " + more;
  }

  // The one data set that the runs of a test made.
  fs::path DataSet() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      EXPECT_TRUE(found.empty()) << "a second entry: " << entry.path();
      found = entry.path();
    }
    return found;
  }

  fs::path folder_;
};

TEST_F(InstrumentedTrainer, HelpExplainsEveryFlag) {
  const Outcome outcome = RunTrainer("--help");
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* flag :
       {"--model",      "--device", "--steps",      "--batch",       "--width",
        "--lr",         "--seed",   "--threads",    "--log-every",   "--warmup",
        "--workers",    "--data",   "--samples",    "--stored-size", "--image-size",
        "--pin-memory", "--amp",    "--item-every", "--cpu-tensors", "--retain-graph",
        "--keep-graph"}) {
    EXPECT_GE(Explanation(outcome.output, flag).size(), 15U) << flag << "\n" << outcome.output;
  }
}

TEST_F(InstrumentedTrainer, RefusesWrongUsageWithExitCodeTwoAndNamesTheFlag) {
  const std::map<std::string, std::string> wrong = {
      {"--bogus", "--bogus"},
      {"--steps 0", "--steps"},
      {"--steps", "--steps"},
      {"--device tpu", "--device"},
      {"--model perceptron", "--model"},
      {"--pin-memory on --device cpu", "--pin-memory"},
      {"--batch 100 --samples 50", "--batch"},
      {"--model transformer --image-size 20", "--image-size"},
      {"--model transformer --width 30", "--width"}};
  for (const auto& [arguments, flag] : wrong) {
    const Outcome outcome = RunTrainer(arguments);
    EXPECT_EQ(outcome.exit_code, 2) << arguments;
    EXPECT_NE(outcome.output.find(flag), std::string::npos) << arguments << ": " << outcome.output;
  }
}

TEST_F(InstrumentedTrainer, ResnetLearns) {
  const Outcome outcome =
      RunTrainer("--data '" + folder_.string() +
                 "' --samples 256 --stored-size 96 --image-size 64 --width 16 --steps 40 "
                 "--log-every 1 --workers 2");
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::vector<double> losses = Losses(outcome.output);
  ASSERT_EQ(losses.size(), 40U) << outcome.output;
  EXPECT_LT(Mean(losses, 35, 5), 0.7 * Mean(losses, 0, 5)) << outcome.output;
}

TEST_F(InstrumentedTrainer, TransformerLearns) {
  const Outcome outcome =
      RunTrainer(Small("--model transformer --width 64 --lr 2e-3 --steps 120 --log-every 1"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  const std::vector<double> losses = Losses(outcome.output);
  ASSERT_EQ(losses.size(), 120U) << outcome.output;
  EXPECT_LT(Mean(losses, 100, 20), 0.9 * Mean(losses, 0, 5)) << outcome.output;
}

TEST_F(InstrumentedTrainer, TrainsOnTheSameBatchesWhateverTheNumberOfWorkers) {
  const std::string flags = "--steps 10 --log-every 1 --workers ";
  const Outcome none = RunTrainer(Small(flags + "0"));
  const Outcome two = RunTrainer(Small(flags + "2"));
  ASSERT_EQ(none.exit_code, 0) << none.output;
  ASSERT_EQ(two.exit_code, 0) << two.output;
  const std::vector<double> losses = Losses(none.output);
  EXPECT_EQ(losses.size(), 10U);  // 4 batches an epoch: it goes on into a third
  EXPECT_EQ(losses, Losses(two.output));
}

TEST_F(InstrumentedTrainer, EveryHabitTrains) {
  const Outcome good = RunTrainer(Small("--steps 4 --log-every 1"));
  const Outcome bad = RunTrainer(
      Small("--steps 4 --log-every 1 --item-every 1 --cpu-tensors --retain-graph --keep-graph"));
  ASSERT_EQ(good.exit_code, 0) << good.output;
  ASSERT_EQ(bad.exit_code, 0) << bad.output;
  EXPECT_EQ(Losses(good.output), Losses(bad.output)) << "a habit costs time, it changes no result";
  const Outcome half = RunTrainer(Small("--steps 4 --log-every 1 --amp bf16"));
  ASSERT_EQ(half.exit_code, 0) << half.output;
  EXPECT_NE(Losses(good.output), Losses(half.output))
      << "bfloat16 rounds, so the losses must differ";
}

TEST_F(InstrumentedTrainer, DrawsTheDataSetOnceAndReusesIt) {
  const Outcome first = RunTrainer(Small("--steps 1"));
  ASSERT_EQ(first.exit_code, 0) << first.output;
  EXPECT_NE(first.output.find("(drawn now)"), std::string::npos) << first.output;
  std::map<fs::path, fs::file_time_type> before;
  for (const auto& entry : fs::directory_iterator(DataSet())) {
    before[entry.path()] = entry.last_write_time();
  }
  EXPECT_EQ(before.size(), 65U);  // 64 pictures and their labels

  const Outcome second = RunTrainer(Small("--steps 1"));
  ASSERT_EQ(second.exit_code, 0) << second.output;
  EXPECT_NE(second.output.find("(reused)"), std::string::npos) << second.output;
  EXPECT_NE(second.output.find(DataSet().string()), std::string::npos) << "it says where";
  std::map<fs::path, fs::file_time_type> after;
  for (const auto& entry : fs::directory_iterator(DataSet())) {
    after[entry.path()] = entry.last_write_time();
  }
  EXPECT_EQ(before, after);
}

TEST_F(InstrumentedTrainer, LeavesNothingBehindWhereTheDataSetCannotBeWritten) {
  // A folder below a file can never be made, not even by root.
  std::ofstream(folder_ / "file") << "x";
  const Outcome outcome =
      RunTrainer("--steps 1 --data '" + (folder_ / "file" / "data").string() + "'");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find((folder_ / "file" / "data").string()), std::string::npos)
      << outcome.output;
  EXPECT_NE(outcome.output.find("--data"), std::string::npos) << outcome.output;
}

TEST_F(InstrumentedTrainer, NamesADamagedOrMissingFileWithAndWithoutWorkers) {
  ASSERT_EQ(RunTrainer(Small("--steps 1")).exit_code, 0);
  const fs::path picture = DataSet() / "000007.jpg";
  const auto size = fs::file_size(picture);
  const std::map<std::string, std::function<void()>> damages = {
      {"cut off", [&] { fs::resize_file(picture, size / 2); }},
      {"not a JPEG file", [&] { std::ofstream(picture, std::ios::trunc) << "no picture"; }},
      {"empty", [&] { std::ofstream(picture, std::ios::trunc); }},
      {"missing", [&] { fs::remove(picture); }}};
  for (const char* kind : {"cut off", "not a JPEG file", "empty", "missing"}) {
    damages.at(kind)();
    for (const char* workers : {"--workers 0", "--workers 2"}) {
      const Outcome outcome = RunTrainer(Small(std::string("--steps 8 ") + workers));
      EXPECT_EQ(outcome.exit_code, 1) << kind << ", " << workers;
      EXPECT_NE(outcome.output.find(picture.string()), std::string::npos)
          << kind << ", " << workers << ": " << outcome.output;
    }
  }
}

TEST_F(InstrumentedTrainer, NamesADamagedLabelsFileAndHowToGetItBack) {
  ASSERT_EQ(RunTrainer(Small("--steps 1")).exit_code, 0);
  const fs::path labels = DataSet() / "labels.txt";
  std::ofstream(labels) << "circle\nheptagon\n";
  const Outcome outcome = RunTrainer(Small("--steps 1"));
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find(labels.string() + ", line 2"), std::string::npos) << outcome.output;
  EXPECT_NE(outcome.output.find("drawn again"), std::string::npos) << outcome.output;
}

TEST_F(InstrumentedTrainer, PrintsTheMeanStepAndItsDataWait) {
  const Outcome outcome = RunTrainer(Small("--steps 6 --warmup 2 --workers 0"));
  ASSERT_EQ(outcome.exit_code, 0) << outcome.output;
  int steps = 0;
  double step_ms = 0;
  double wait_ms = 0;
  ASSERT_EQ(std::sscanf(Lines(outcome.output).back().c_str(),
                        "mean of %d steps after warm-up: %lf ms/step, of it %lf ms", &steps,
                        &step_ms, &wait_ms),
            3)
      << outcome.output;
  EXPECT_EQ(steps, 4);
  EXPECT_GT(wait_ms, 0.0);  // without workers the training thread decodes itself
  EXPECT_LT(wait_ms, step_ms);
}

}  // namespace
