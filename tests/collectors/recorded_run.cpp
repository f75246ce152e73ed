#include "tests/collectors/recorded_run.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/recording/files/run_directory.h"
#include "trace/recording/seal/drainer.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::testing {

namespace fs = std::filesystem;

namespace {
constexpr unsigned kLongestRunSeconds = 240;
}

RecordedRun::RecordedRun(uint64_t max_bytes, fs::path parent) {
  if (parent.empty()) parent = fs::temp_directory_path();
  std::string pattern = (parent / "trainprof-test-XXXXXX").string();
  scratch_ = mkdtemp(pattern.data());
  directory_ = scratch_ / "run";
  recording::RunDescription run;
  run.max_bytes = max_bytes;
  const Result<void> made = recording::CreateRun(directory_, run);
  EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error());
  for (const char* name : recording::kRankVariables) unsetenv(name);
  unsetenv(recording::kEnvOptions);
}

RecordedRun::~RecordedRun() {
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

void RecordedRun::StartDraining() {
  auto drainer = SideProcess::Start("drain", {}, [this](int stop_fd) {
    return recording::DrainUntilStopped(directory_, stop_fd);
  });
  ASSERT_TRUE(drainer.ok()) << drainer.error();
  drainer_.emplace(std::move(drainer).value());
}

void RecordedRun::StopDraining(bool kill) {
  if (drainer_) drainer_->Stop(std::chrono::seconds(kill ? 0 : 20));
  drainer_.reset();
}

std::vector<recording::DrainedEntry> RecordedRun::Drained() const {
  std::vector<recording::DrainedEntry> all;
  for (const recording::RankFolder& folder : recording::RankFoldersIn(directory_)) {
    for (const fs::path& path : folder.segments) {
      const auto info = recording::SegmentReader::ReadInfo(path);
      if (!info.ok()) continue;
      Quality quality;
      recording::DrainedFile file;
      file.Read(path, info.value().identity, quality);
      EXPECT_TRUE(quality.items().empty());
      all.insert(all.end(), file.entries().begin(), file.entries().end());
    }
  }
  return all;
}

pid_t RecordedRun::Start(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  pid_ = fork();
  if (pid_ == 0) {
    setenv(recording::kEnvRunDirectory, directory_.c_str(), 1);
    setenv("NVTX_INJECTION64_PATH", TEST_LIBRARY, 1);
    setenv("CUDA_INJECTION64_PATH", TEST_LIBRARY, 1);
    setenv("TSAN_OPTIONS", "suppressions=" TRAINPROF_SOURCE_DIR "/tests/collectors/tsan.supp", 1);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    if (file_size_limit_bytes >= 0) {
      const rlimit limit = {static_cast<rlim_t>(file_size_limit_bytes),
                            static_cast<rlim_t>(file_size_limit_bytes)};
      setrlimit(RLIMIT_FSIZE, &limit);
    }
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    std::vector<std::string> copy = arguments;
    copy.insert(copy.begin(), program);
    std::vector<char*> argv;
    for (std::string& argument : copy) argv.push_back(argument.data());
    argv.push_back(nullptr);
    alarm(kLongestRunSeconds);  // outlives exec: a program that hangs fails its test
    execv(program.c_str(), argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  stdout_ = pipe_ends[0];
  return pid_;
}

int RecordedRun::Wait() {
  output_.clear();
  char buffer[4096];
  for (ssize_t n; (n = read(stdout_, buffer, sizeof buffer)) > 0;) {
    output_.append(buffer, static_cast<size_t>(n));
  }
  close(stdout_);
  int status = -1;
  waitpid(pid_, &status, 0);
  return status;
}

int RecordedRun::Run(const std::vector<std::string>& arguments) {
  Start(arguments);
  return Wait();
}

std::vector<recording::RankTrace> RecordedRun::Read() const {
  auto ranks = recording::ReadRecording(directory_);
  EXPECT_TRUE(ranks.ok()) << (ranks.ok() ? "" : ranks.error());
  return ranks.ok() ? std::move(ranks).value() : std::vector<recording::RankTrace>{};
}

Trace RecordedRun::ReadOne() const {
  std::vector<recording::RankTrace> ranks = Read();
  EXPECT_EQ(ranks.size(), 1u);
  return ranks.empty() ? Trace{} : std::move(ranks.front().trace);
}

uint64_t RecordedRun::BytesOfSegments() const {
  uint64_t bytes = 0;
  for (const recording::RankFolder& folder : recording::RankFoldersIn(directory_)) {
    for (const fs::path& path : folder.segments) bytes += fs::file_size(path);
  }
  return bytes;
}

Trace RecordWith(const std::string& options, const std::vector<std::string>& arguments) {
  RecordedRun run;
  run.environment[recording::kEnvOptions] = options;
  EXPECT_EQ(run.Run(arguments), 0) << run.output();
  return run.ReadOne();
}

std::optional<Row> FindRange(const Trace& trace, std::string_view name) {
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.Text(trace.ranges.name[row]) == name) return Row{row};
  }
  return std::nullopt;
}

std::vector<std::string> RangeNames(const Trace& trace) {
  std::vector<std::string> names;
  for (StringId name : trace.ranges.name) names.emplace_back(trace.Text(name));
  return names;
}

int64_t CountRanges(const Trace& trace, std::string_view name) {
  int64_t count = 0;
  for (StringId id : trace.ranges.name) count += trace.Text(id) == name;
  return count;
}

}  // namespace trainprof::testing
