// Replacing an earlier recording (`trainprof run --force -o DIR`): whether a folder is one that may
// go, and taking it out of the way so that of several ranks exactly one does.
#pragma once

#include <filesystem>
#include <string>

namespace trainprof {

// A supervisor's claim to its run: while it holds one, nobody replaces the recording. Shared by the
// ranks of a run; it lies on a file of the recording and goes with the process.
class RunClaim {
 public:
  RunClaim() = default;
  RunClaim(RunClaim&& other) noexcept;
  RunClaim& operator=(RunClaim&& other) noexcept;
  ~RunClaim();

  // False when somebody replaces the recording right now, or has done so meanwhile.
  bool Take(const std::filesystem::path& file);

 private:
  int fd_ = -1;
};

enum class SetAsideResult {
  kDone,     // `aside` holds it now; delete it with RemoveSetAside
  kChanged,  // another rank did it, or is doing it: look again
  kRefused,  // `why` says what stands in the way
};
struct SetAsideOutcome {
  SetAsideResult result;
  std::string why;
};

// Renames the recording at `directory` to `aside`. Refuses what is no recording of ours, what holds
// anything else, what is a symbolic link or another user's, and a run that may be going on.
// `lock_file` is the name, in the folder, of the file that RunClaim::Take was given.
SetAsideOutcome SetAside(const std::filesystem::path& directory, const char* lock_file,
                         const std::filesystem::path& aside);

}  // namespace trainprof
