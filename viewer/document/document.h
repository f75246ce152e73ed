// An open job: a thread of its own loads and analyses it, rank after rank, while what is there is
// drawn.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "analysis/analysis.h"
#include "viewer/navigation/follow.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {

struct LoadProgress {
  std::string text;     // "reading rank 3 of 8: 42 %, 310 MB/s, 3 s left"
  double share = -1;    // 0..1; < 0: not known
  uint64_t events = 0;  // loaded so far
  size_t ranks = 0;     // loaded so far
  bool done = false;    // nothing more will come
  std::string error;    // why it ended early; "cancelled" too
};

// All but progress() and Cancel() are for the thread that draws.
class Document {
 public:
  // Begins to load; never fails (see progress().error).
  explicit Document(std::filesystem::path path);
  ~Document();  // cancels, and waits for the thread
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  const std::filesystem::path& path() const;
  LoadProgress progress() const;  // any thread
  void Cancel();                  // any thread; what is loaded stays

  // Takes over what was loaded since the last call; true when that was something. Ranks keep their
  // index and lines theirs; new ones come behind them. Lanes are made anew.
  bool Update();

  const Lines* lines() const;  // null until the first rank is there
  LaneStore& store();          // only with lines()
  size_t ranks() const;
  const Trace& TraceOf(uint32_t rank) const;
  // Null while it is being made: a rank is drawn before its verdict is there.
  const RankAnalysis* Analysis(uint32_t rank) const;
  // The index of the rank that the verdict speaks of, and of the one in the middle, by mean step.
  uint32_t SlowestRank() const;
  uint32_t MedianRank() const;
  const LaunchLinks& Links(uint32_t rank);  // made when first asked for
  // "recording", "kineto", "chrome"; what else a report says of the job as a whole.
  const std::string& kind() const;

 private:
  struct Loader;
  std::unique_ptr<Loader> loader_;
};

}  // namespace trainprof
