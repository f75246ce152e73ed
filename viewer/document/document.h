// An open job: threads of its own load and analyse it, rank after rank, while what is there is
// drawn.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "analysis/job/job.h"
#include "viewer/navigation/follow.h"
#include "viewer/timeline/lane_store.h"

namespace trainprof {

struct LoadProgress {
  std::string text;     // "reading rank3.json.gz (4 of 8): 42 %, 310 MB/s, ..., 3 s left"
  double share = -1;    // 0..1, of what the text speaks of; < 0: not known
  uint64_t events = 0;  // loaded so far
  size_t ranks = 0;     // loaded so far
  size_t analysed = 0;  // of them
  bool done = false;    // nothing more will come
  // The program that is recorded still ran when loading began: a new Document has what came since.
  bool still_recorded = false;
  std::string killed;  // how the recorded program was, where it did not end by itself
  std::string error;   // why it ended early; "cancelled" too
};

// All but progress() and Cancel() are for the thread that draws. None waits for loading.
class Document {
 public:
  // Begins to load; never fails (see progress().error).
  explicit Document(std::filesystem::path path);
  // Cancels, and waits for the threads until Stopped().
  ~Document();
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  const std::filesystem::path& path() const;
  LoadProgress progress() const;  // any thread
  // Any thread. From here on progress() says done; what was taken over stays.
  void Cancel();
  // After Cancel: whether the threads have ended, some hundredths of a second later. A document
  // that is closed is kept until then, so that no frame waits for it.
  bool Stopped() const;

  // Takes over what was loaded since the last call; true when that was something, or was the end.
  // Ranks keep their index and lines theirs; new ones come behind them. Lanes stay unless they show
  // something else now. Pointers and references to lines() end here; to a rank's data they do not.
  bool Update();

  const Lines* lines() const;  // null until the first rank is there
  // The same, for a thread that keeps the document as well: they stay when others take their place.
  const std::shared_ptr<const Lines>& shared_lines() const;
  LaneStore& store();  // only with lines()
  size_t ranks() const;
  const Trace& TraceOf(uint32_t rank) const;
  // Null while it is being made: a rank is drawn before its verdict is there. What comes of it
  // (inferred steps, when GPUs were busy and why not) has no event in its lane until then.
  const RankAnalysis* Analysis(uint32_t rank) const;
  // What the analysis was made of; null as long as it is.
  const RankModel* Model(uint32_t rank) const;
  // As it is in lines() from the beginning, or empty where steps have to be inferred.
  const Steps& StepsOf(uint32_t rank) const;
  // The index of the rank that the verdict speaks of, and of the one in the middle, by mean step.
  uint32_t SlowestRank() const;
  uint32_t MedianRank() const;
  // Unfinished until the rank is analysed. O(1).
  const LaunchLinks& Links(uint32_t rank);
  // "recording", "kineto", "chrome"; empty until the first rank is there.
  const std::string& kind() const;
  // What a report says of the job as a whole; null until it is loaded.
  const JobAnalysis* job() const;
  // The errors of files that could not be read: they are in the first rank's quality, too.
  const std::vector<std::string>& unreadable() const;

 private:
  struct Shown;
  std::unique_ptr<Shown> shown_;
};

}  // namespace trainprof
