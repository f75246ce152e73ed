// Where a run is recorded: claiming the folder without ever overwriting another run.
#include "profiler/session/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <random>
#include <system_error>
#include <thread>

#include "profiler/session/launch.h"
#include "trace/recording/layout.h"

namespace fs = std::filesystem;

namespace trainprof {
namespace {

// Says which launch made the folder; the ranks of the same launch may join.
constexpr char kLaunchFile[] = "launch";
// So many runs of one job, or within one second, in one folder; past it something is wrong.
constexpr int kMaxSuffix = 10000;
// A folder that is being filled by another rank is complete after microseconds.
constexpr std::chrono::milliseconds kFillingLimit{500};
constexpr std::chrono::milliseconds kFillingPoll{5};

fs::path RankFolder(int rank) { return fmt::format("rank-{:05}", rank); }

// What is needed to try one name after the other.
struct Claim {
  fs::path stage;  // complete folder under a hidden name; renamed to the final name
  int rank;
  std::string launch;
};

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool IsRecording(const fs::path& directory) {
  std::error_code error;
  return fs::exists(directory / recording::kControlFile, error);
}

Error CannotCreate(const fs::path& directory, int error_number) {
  return Error{fmt::format("cannot create the recording's folder '{}': {}", directory.string(),
                           strerror(error_number))};
}

// A name that nobody has: in other containers and on other hosts that share the folder, another
// process has our pid. One that was killed here leaves its own behind, which may as well be at
// work.
fs::path StageBeside(const fs::path& target) {
  std::random_device random;
  return target.parent_path() /
         fmt::format(".trainprof-new-{}-{:08x}{:08x}", getpid(), random(), random());
}

// Prepares the folder under a hidden name beside `target`, so that it appears complete or not at
// all.
Result<void> Stage(const Claim& claim, const fs::path& target,
                   const recording::RunDescription& run) {
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) return CannotCreate(target, error.value());
  if (auto made = recording::CreateRun(claim.stage, run); !made.ok()) {
    fs::remove_all(claim.stage, error);
    std::string message = made.error();
    for (size_t at; (at = message.find(claim.stage.string())) != std::string::npos;) {
      message.replace(at, claim.stage.string().size(), target.string());
    }
    return Error{message};
  }
  std::ofstream launch(claim.stage / kLaunchFile, std::ios::binary);
  launch << claim.launch;
  launch.close();
  if (!launch.good()) return CannotCreate(target, errno);
  if (claim.rank >= 0 && mkdir((claim.stage / RankFolder(claim.rank)).c_str(), 0777) != 0) {
    return CannotCreate(target, errno);
  }
  return {};
}

// True when `directory` belongs to our launch and nobody has claimed our rank in it.
bool Join(const Claim& claim, const fs::path& directory) {
  if (claim.rank < 0 || !IsRecording(directory)) return false;
  const auto limit = std::chrono::steady_clock::now() + kFillingLimit;
  std::string launch = ReadText(directory / kLaunchFile);
  while (launch.empty() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(kFillingPoll);
    launch = ReadText(directory / kLaunchFile);
  }
  return launch == claim.launch && mkdir((directory / RankFolder(claim.rank)).c_str(), 0777) == 0;
}

// Moves the staged files into the user's own empty folder. The control file goes first, by link(),
// which fails when another supervisor was faster; the launch file last.
bool FillEmptyFolder(const Claim& claim, const fs::path& directory) {
  const fs::path control = directory / recording::kControlFile;
  if (link((claim.stage / recording::kControlFile).c_str(), control.c_str()) != 0) return false;
  unlink((claim.stage / recording::kControlFile).c_str());
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(claim.stage, error)) {
    if (entry.path().filename() == kLaunchFile) continue;
    rename(entry.path().c_str(), (directory / entry.path().filename()).c_str());
  }
  rename((claim.stage / kLaunchFile).c_str(), (directory / kLaunchFile).c_str());
  fs::remove_all(claim.stage, error);
  return true;
}

// One name: taken (a place), not to be had (nothing), or an error that no other name avoids.
Result<std::optional<RunPlace>> TryName(const Claim& claim, const fs::path& directory) {
  std::error_code error;
  if (fs::is_directory(directory, error)) {
    if (fs::is_empty(directory, error) && !error && FillEmptyFolder(claim, directory)) {
      return std::optional(RunPlace{directory, claim.rank, false, true});
    }
    if (Join(claim, directory)) return std::optional(RunPlace{directory, claim.rank, true, false});
    return std::optional<RunPlace>();
  }
  // rename() replaces an empty folder and fails on anything else: ours are never empty. Asking
  // first whether the name is free would miss another rank that takes it in between.
  if (rename(claim.stage.c_str(), directory.c_str()) == 0) {
    return std::optional(RunPlace{directory, claim.rank, false, false});
  }
  if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
    return CannotCreate(directory, errno);
  }
  if (Join(claim, directory)) return std::optional(RunPlace{directory, claim.rank, true, false});
  return std::optional<RunPlace>();
}

// True for a folder that has files and is no recording: the run goes inside.
bool IsOccupied(const fs::path& directory) {
  std::error_code error;
  return fs::is_directory(directory, error) && !fs::is_empty(directory, error) && !error &&
         !IsRecording(directory);
}

fs::path FirstChoice(const std::string& requested, int rank) {
  if (requested.empty()) return fs::current_path() / DefaultRunName(rank);
  fs::path chosen = fs::absolute(requested).lexically_normal();
  if (!chosen.has_filename()) chosen = chosen.parent_path();  // "out/" is "out"
  return IsOccupied(chosen) ? chosen / DefaultRunName(rank) : chosen;
}

}  // namespace

int RankOfEnvironment() {
  for (const char* name : recording::kRankVariables) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    char* end = nullptr;
    const long rank = std::strtol(value, &end, 10);
    if (*end == '\0' && rank >= 0 && rank <= 99'999'999) return static_cast<int>(rank);
  }
  return -1;
}

Result<RunPlace> ClaimRunDirectory(const std::string& requested,
                                   const recording::RunDescription& run) {
  std::error_code error;
  if (const fs::path here = fs::current_path(error); here.empty())
    return Error{"cannot read the current folder: " + error.message()};
  const int rank = RankOfEnvironment();
  const fs::path first = FirstChoice(requested, rank);
  const Claim claim{StageBeside(first), rank, LaunchIdentity()};
  if (auto staged = Stage(claim, first, run); !staged.ok()) {
    fs::remove_all(claim.stage, error);
    return Error{staged.error()};
  }
  for (int suffix = 1; suffix <= kMaxSuffix; ++suffix) {
    const fs::path name =
        suffix == 1 ? first : fs::path(fmt::format("{}-{}", first.string(), suffix));
    auto tried = TryName(claim, name);
    if (tried.ok() && !tried.value()) continue;
    fs::remove_all(claim.stage, error);
    if (!tried.ok()) return Error{tried.error()};
    return *tried.value();
  }
  fs::remove_all(claim.stage, error);
  return Error{fmt::format("'{}' and {} names after it are taken: choose another with -o",
                           first.string(), kMaxSuffix)};
}

void ReleaseRunDirectory(const RunPlace& place) {
  std::error_code error;
  if (place.rank >= 0) fs::remove(place.directory / RankFolder(place.rank), error);
  if (place.joined) return;
  for (const auto& entry : fs::directory_iterator(place.directory, error)) {
    if (entry.is_directory(error)) return;  // another rank has joined
  }
  for (const char* file :
       {recording::kManifestFile, recording::kControlFile, recording::kClockFile, kLaunchFile}) {
    fs::remove(place.directory / file, error);
  }
  if (!place.was_there) fs::remove(place.directory, error);
}

}  // namespace trainprof
