// Where a run is recorded: claiming the folder without ever overwriting another run.
#include "profiler/session/naming.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>

#include "profiler/process/launch.h"
#include "trace/io/write_all.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_files.h"
#include "trace/recording/wire/layout.h"

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
// Ranks of one launch start within so long of each other, as far as replacing a recording goes.
constexpr std::chrono::milliseconds kReplaceLimit{1500};

fs::path RankFolder(int rank) { return fmt::format("rank-{:05}", rank); }

// What is needed to try one name after the other.
struct Claim {
  fs::path stage;  // complete folder under a hidden name; renamed to the final name
  int rank;
  std::string launch;  // what the launch file says of us: the launch, then the job
  RunClaim hold;       // on the stage's launch file
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
  // Not std::random_device, which would need a newer glibc than all else does.
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) != sizeof number) {
    number = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return target.parent_path() / fmt::format(".trainprof-new-{}-{:016x}", getpid(), number);
}

bool WriteLaunch(const Claim& claim) {
  const auto folder = recording::OpenFolder(claim.stage, recording::Links::kRefuse);
  if (!folder.ok()) return false;
  const recording::OwnedFd file(folder.value().Create(kLaunchFile));
  return file.is_open() && WriteAll(file.get(), claim.launch) == 0;
}

// Prepares the folder under a hidden name beside `target`, so that it appears complete or not at
// all.
Result<void> Stage(Claim& claim, const fs::path& target, const recording::RunDescription& run) {
  std::error_code error;
  fs::create_directories(target.parent_path(), error);
  if (error) return CannotCreate(target, error.value());
  if (auto created = recording::CreateRun(claim.stage, run); !created.ok()) {
    fs::remove_all(claim.stage, error);
    std::string message = created.error();
    for (size_t at; (at = message.find(claim.stage.string())) != std::string::npos;) {
      message.replace(at, claim.stage.string().size(), target.string());
    }
    return Error{message};
  }
  const bool made =
      WriteLaunch(claim) && claim.hold.Take(claim.stage / kLaunchFile) &&
      (claim.rank < 0 || recording::MakeFolderInRun(claim.stage / RankFolder(claim.rank)));
  if (!made) return CannotCreate(target, errno);
  return {};
}

// What the launch file of a recording says; it comes last where a folder is being filled.
std::string LaunchOf(const fs::path& directory) {
  const auto limit = std::chrono::steady_clock::now() + kFillingLimit;
  std::string launch = ReadText(directory / kLaunchFile);
  while (launch.empty() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(kFillingPoll);
    launch = ReadText(directory / kLaunchFile);
  }
  return launch;
}

// Joins the folder where it belongs to our launch and nobody has claimed our rank in it.
bool Join(const Claim& claim, const fs::path& directory, RunPlace& place) {
  if (claim.rank < 0 || !IsRecording(directory) || LaunchOf(directory) != claim.launch) {
    return false;
  }
  place.joined = true;
  return place.claim.Take(directory / kLaunchFile) &&
         recording::MakeFolderInRun(directory / RankFolder(claim.rank));
}

// Of the user's own empty folder, which becomes a recording.
struct RunMode {
  mode_t before;
  mode_t wanted;
};

RunMode ModeFor(const fs::path& directory, const Claim& claim) {
  constexpr mode_t kAll = 07777;
  struct stat own {};
  struct stat staged {};
  if (stat(directory.c_str(), &own) != 0 || stat(claim.stage.c_str(), &staged) != 0) return {0, 0};
  return {own.st_mode & kAll, (staged.st_mode & 0777) | (own.st_mode & S_ISGID)};
}

// Moves the staged files into the user's own empty folder. The control file goes first, by link(),
// which fails when another supervisor was faster; the launch file last.
bool FillEmptyFolder(const Claim& claim, const fs::path& directory, const RunMode& mode) {
  const fs::path control = directory / recording::kControlFile;
  if (link((claim.stage / recording::kControlFile).c_str(), control.c_str()) != 0) return false;
  chmod(directory.c_str(), mode.wanted);
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
Result<std::optional<RunPlace>> TryName(Claim& claim, const fs::path& directory) {
  RunPlace place;
  place.directory = directory;
  place.rank = claim.rank;
  std::error_code error;
  if (fs::is_directory(directory, error)) {
    const RunMode mode = ModeFor(directory, claim);
    if (fs::is_empty(directory, error) && !error && FillEmptyFolder(claim, directory, mode)) {
      place.mode_before = mode.before;
      place.claim = std::move(claim.hold);
      return std::optional(std::move(place));
    }
    if (Join(claim, directory, place)) return std::optional(std::move(place));
    return std::optional<RunPlace>();
  }
  // rename() replaces an empty folder and fails on anything else: ours are never empty. Asking
  // first whether the name is free would miss another rank that takes it in between.
  if (rename(claim.stage.c_str(), directory.c_str()) == 0) {
    place.claim = std::move(claim.hold);
    return std::optional(std::move(place));
  }
  if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) {
    return CannotCreate(directory, errno);
  }
  if (Join(claim, directory, place)) return std::optional(std::move(place));
  return std::optional<RunPlace>();
}

// The first free one of `first`, first-2, first-3, ...
ClaimOutcome TakeNumbered(Claim& claim, const fs::path& first) {
  for (int suffix = 1; suffix <= kMaxSuffix; ++suffix) {
    const fs::path name =
        suffix == 1 ? first : fs::path(fmt::format("{}-{}", first.string(), suffix));
    auto tried = TryName(claim, name);
    if (!tried.ok()) return {std::nullopt, tried.error()};
    if (tried.value()) return {std::move(*tried.value()), {}};
  }
  return {std::nullopt, fmt::format("'{}' and {} names after it are taken: choose another with -o",
                                    first.string(), kMaxSuffix)};
}

// The launcher's attempt after one that has recorded there.
bool IsNextAttempt(const Claim& claim, const fs::path& directory) {
  const auto job = [](const std::string& launch) {
    return launch.substr(std::min(launch.find('\n'), launch.size()));
  };
  return IsLaterAttempt() && IsRecording(directory) &&
         job(LaunchOf(directory)) == job(claim.launch);
}

// Why a folder that the user named is not taken.
std::string Refusal(const std::string& named, const fs::path& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return fmt::format("-o {}: this is not a folder. Name a new one", named);
  }
  if (IsRecording(directory)) {
    return fmt::format(
        "-o {}: an earlier recording is there. Replace it with --force, name another folder, or "
        "leave -o out for a new name each time",
        named);
  }
  return fmt::format("-o {}: this folder has other files in it. Name a new one, e.g. -o {}", named,
                     (fs::path(named) / "run").lexically_normal().string());
}

// Exactly the folder that the user named. With --force an earlier recording goes to `aside`,
// whatever comes of it then.
ClaimOutcome TakeOrReplace(Claim& claim, const fs::path& directory, const PlaceRequest& request,
                           const fs::path& aside, bool& is_aside) {
  const auto limit = std::chrono::steady_clock::now() + kReplaceLimit;
  for (;;) {
    auto tried = TryName(claim, directory);
    if (!tried.ok()) return {std::nullopt, tried.error(), request.force};
    if (tried.value()) return {std::move(*tried.value()), {}};
    if (IsNextAttempt(claim, directory)) {
      ClaimOutcome numbered = TakeNumbered(claim, directory);
      if (numbered.place) {
        numbered.place->note =
            fmt::format("an earlier attempt of this job is in {}: this one is in {}",
                        directory.string(), numbered.place->directory.string());
      }
      return numbered;
    }
    if (!request.force) return {std::nullopt, Refusal(request.output, directory), true};
    const SetAsideOutcome outcome = SetAside(directory, kLaunchFile, aside);
    if (outcome.result == SetAsideResult::kDone) {
      is_aside = true;
      continue;
    }
    // Ranks start together: the one that replaces it, or has done so, needs a moment.
    const bool wait =
        outcome.result == SetAsideResult::kChanged && std::chrono::steady_clock::now() < limit;
    if (!wait) {
      return {std::nullopt,
              fmt::format("-o {} --force: not replaced, as {}", request.output,
                          outcome.why.empty() ? "others keep replacing it" : outcome.why),
              true};
    }
    std::this_thread::sleep_for(kFillingPoll);
  }
}

// The same; without a place the earlier recording comes back, or the error says where it is.
ClaimOutcome TakeNamed(Claim& claim, const fs::path& directory, const PlaceRequest& request) {
  const fs::path aside = claim.stage.string() + "-replaced";
  bool is_aside = false;
  ClaimOutcome outcome = TakeOrReplace(claim, directory, request, aside, is_aside);
  if (!is_aside) return outcome;
  if (outcome.place) {
    outcome.place->replaced = aside;
  } else if (rename(aside.c_str(), directory.c_str()) != 0) {
    outcome.error += ". The earlier recording is in " + aside.string();
  }
  return outcome;
}

fs::path Named(const std::string& output) {
  fs::path chosen = fs::absolute(output).lexically_normal();
  return chosen.has_filename() ? chosen : chosen.parent_path();  // "out/" is "out"
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

ClaimOutcome ClaimRunDirectory(const PlaceRequest& request, const recording::RunDescription& run) {
  std::error_code error;
  const fs::path here = fs::current_path(error);
  if (here.empty()) return {std::nullopt, "cannot read the current folder: " + error.message()};
  const int rank = RankOfEnvironment();
  const bool is_named = !request.output.empty();
  const fs::path first = is_named ? Named(request.output) : here / DefaultRunName(rank);
  Claim claim{StageBeside(first), rank, LaunchIdentity() + "\n" + JobIdentity(), {}};
  ClaimOutcome outcome;
  if (auto staged = Stage(claim, first, run); staged.ok()) {
    outcome = is_named ? TakeNamed(claim, first, request) : TakeNumbered(claim, first);
  } else {
    outcome.error = staged.error();
    // What lies there already must not pass for the recording of a run that was not recorded.
    outcome.refused = is_named && fs::exists(first, error) && !fs::is_empty(first, error);
  }
  fs::remove_all(claim.stage, error);
  return outcome;
}

void KeepRunDirectory(RunPlace& place) {
  std::error_code error;
  if (!place.replaced.empty()) fs::remove_all(place.replaced, error);
  place.replaced.clear();
}

void ReleaseRunDirectory(RunPlace& place) {
  std::error_code error;
  if (place.rank >= 0) fs::remove(place.directory / RankFolder(place.rank), error);
  if (place.joined) return KeepRunDirectory(place);
  for (const auto& entry : fs::directory_iterator(place.directory, error)) {
    if (entry.is_directory(error)) return KeepRunDirectory(place);  // another rank has joined
  }
  for (const char* file :
       {recording::kManifestFile, recording::kControlFile, recording::kClockFile, kLaunchFile}) {
    fs::remove(place.directory / file, error);
  }
  if (place.mode_before != 0) {
    chmod(place.directory.c_str(), place.mode_before);
  } else {
    fs::remove(place.directory, error);
  }
  if (!place.replaced.empty()) rename(place.replaced.c_str(), place.directory.c_str());
}

}  // namespace trainprof
