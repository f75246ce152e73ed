// How the profiled run ended, and which of its files are gone: what manifest.json says.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trainprof::recording {

struct RunState {
  bool known = false;  // there is a manifest that can be read
  bool ended = false;  // the supervisor has seen the program's end
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string host = {};  // that ran the program
  // Segments and files of samples that the manifest names and the recording lacks:
  // "rank-00001/4711-23.tpz". A run directory's alone; of a rank's folder nothing is known to be
  // missing.
  std::vector<std::string> missing_files;
  std::vector<std::string> damaged_files;  // the same of run.ctl and clock.tpc
  // Why that cannot be told of a run directory: "the recording has no manifest.json".
  std::string no_manifest;

  // True where the program neither ended by itself with success nor is known to.
  bool Failed() const {
    return known && (!ended || signal.has_value() || exit_code.value_or(0) != 0);
  }
};

// Of the run that `path` is or belongs to (RunOf). A manifest that is absent, no regular file,
// larger than 8 MiB or none of ours is not known.
RunState ReadRunState(const std::filesystem::path& path);

// A sentence without its full stop, for a run that did not end by itself: "the program was ended by
// signal 9 (Killed)". Empty for any other, and for what is no recording.
std::string HowItWasKilled(const std::filesystem::path& path);

}  // namespace trainprof::recording
