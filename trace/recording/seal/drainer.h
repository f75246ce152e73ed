// Takes full chunks out of the raw segments of living processes, compresses them into files beside
// these (format.h, DrainedHeader), and hands them back: a writer's chunks serve again, so that it need
// not wait for new pages of a file, and what is raw stays small.
//
// Nothing is lost however it ends. A chunk is handed back when it is whole in the other file; killed
// before, it is in both, and read once. While nobody drains, or too slowly, writers claim new chunks.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>

namespace trainprof::recording {

class SegmentDrain;
class DrainBound;

class Drainer {
 public:
  // Of a run that is recorded on this machine. Where several run beside each other each has some of
  // the segments.
  explicit Drainer(std::filesystem::path run_dir);
  ~Drainer();

  // Begins with segments that have grown large enough.
  void FindSegments();
  // Ends with those whose processes have ended: the sealer has them.
  void LeaveTheDead();
  // Takes out what was handed over by now. How many chunks.
  size_t Drain();

 private:
  std::filesystem::path run_dir_;
  std::unique_ptr<DrainBound> bound_;
  // nullptr: is not drained, and will not be.
  std::map<std::filesystem::path, std::unique_ptr<SegmentDrain>> segments_;
};

// Until the other end of `stop_fd` closes. The exit code of a process that does nothing else.
int DrainUntilStopped(const std::filesystem::path& run_dir, int stop_fd);

}  // namespace trainprof::recording
