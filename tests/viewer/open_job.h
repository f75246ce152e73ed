// An open job for tests of what stands on a document: written as a script, exported to a file,
// loaded as any user's trace.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "viewer/state/actions.h"

namespace trainprof::testing {

// Steps of 10 ms on thread 1: 2 ms of loader wait, then a launch (correlation 100 + step) of a
// kernel of 4 ms on stream 7 and an .item() that waits for it; 12 steps.
inline constexpr int kSteps = 12;
extern const std::string_view kLoaderBoundScript;

// Writes each script as a rank's file into `folder`; the file of one, the folder of several.
std::filesystem::path WriteJob(const std::filesystem::path& folder,
                               const std::vector<std::string_view>& scripts);

// Takes over what is loaded until nothing more comes.
void WaitForAll(State& state);

// Whether all of `time` is in sight.
inline bool Covers(const Interval& view, const Interval& time) {
  return view.begin <= time.begin && time.end <= view.end;
}

class OpenJob {
 public:
  explicit OpenJob(const std::vector<std::string_view>& scripts = {kLoaderBoundScript});
  State& state() { return state_; }
  // The events of a name, in the order of their time.
  std::vector<EventRef> Named(std::string_view name);

 private:
  ScratchFolder folder_;
  State state_;
};

}  // namespace trainprof::testing
