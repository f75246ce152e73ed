// What loads a job behind a Document: one thread reads its ranks, one analyses them, one makes the
// lines of what is there. Reading the first rank and making its lines has the machine to itself.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "analysis/job/job.h"
#include "viewer/document/document.h"

namespace trainprof {

// What comes of the analysis of a rank.
struct RankResults {
  std::shared_ptr<const RankModel> model;
  RankAnalysis analysis;
  LaunchLinks links;
  double own_step_ms = 0;  // RankAnalysis::OwnStepMs
};

// A rank as it was read.
struct LoadedRank {
  Trace trace;
  RankAnalysis provisional;                  // nothing but the steps that are named
  std::vector<DeviceAccount> no_accounts{};  // before the analysis there are none
  double mean_step_ms = 0;
};

// Neither moves nor changes until the loader goes.
struct ShownRank {
  const LoadedRank* loaded = nullptr;
  const RankResults* results = nullptr;  // null while they are being made
};

// What is shown from one Document::Update to the next.
struct Edition {
  std::vector<ShownRank> ranks;
  // Shared: drawn by one thread while another makes the next edition's from them. Null without
  // ranks.
  std::shared_ptr<const Lines> lines;
  std::shared_ptr<const JobAnalysis> job;  // with the last edition
  std::vector<std::string> unreadable;     // the same
};

class Loader {
 public:
  explicit Loader(std::filesystem::path path);
  ~Loader();  // cancels, and waits for the threads
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // All for any thread.
  const std::filesystem::path& path() const { return path_; }
  LoadProgress progress() const;
  void Cancel();
  bool Stopped() const { return running_ == 0; }
  // True when there is something new since the last call: an edition, or the end. `edition` is null
  // when nothing was read since. With the last one progress() says done.
  bool Take(std::unique_ptr<Edition>& edition);

 private:
  // From one edition to the next: all that depends on lines is made anew with each.
  static constexpr std::chrono::milliseconds kBetweenEditions{200};
  using Work = void (Loader::*)();

  void Start(Work work);
  // What the threads do.
  void Read();
  void Analyse();
  void Publish();

  void Report(const LoadStatus& status);
  Result<void> Add(Trace trace);
  void FinishReading(JobFacts facts, std::string error);
  void Keep(size_t rank, RankResults results);
  void Conclude(JobAnalyzer analyzer);
  void End(std::string error);  // now; what was not published is not shown any more
  // With mutex_ held.
  void SayWhatIsLeft();
  void SayThatAllIsDone();

  const std::filesystem::path path_;
  std::atomic<bool> cancel_ = false;
  std::atomic<int> running_ = 0;  // threads

  // From here on guarded by mutex_; changed_ tells of changes.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ShownRank> ranks_;
  std::vector<std::unique_ptr<const LoadedRank>> loaded_;    // of ranks_
  std::vector<std::unique_ptr<const RankResults>> results_;  // of ranks_, and former ones
  uint64_t read_events_ = 0;                                 // in ranks_
  size_t analysed_ = 0;                                      // of ranks_
  JobSource source_;
  JobFacts facts_;
  std::shared_ptr<const JobAnalysis> job_;  // once all are analysed
  bool all_read_ = false;
  bool all_analysed_ = false;
  std::string notice_;         // what opening did to the recording; empty: nothing
  bool unpublished_ = false;   // ranks_ changed since the last edition
  bool is_published_ = false;  // at least once
  std::unique_ptr<Edition> next_;
  bool is_news_ = false;
  LoadProgress progress_;

  std::vector<std::thread> threads_;
};

}  // namespace trainprof
