#include "viewer/document/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

size_t EventsOf(const Trace& trace) {
  size_t events = 0;
  ForEachTable(trace, [&](Table, const EventColumns& table) { events += table.size(); });
  return events;
}

// What neither the analysis nor a pane looks at; an export reads the file.
void DropWhatNobodyShows(Trace& trace) {
  DropArrows(trace);
  trace.others = {};
  trace.source_members = {};
}

std::string CountText(uint64_t events) {
  constexpr uint64_t kMillion = 1'000'000;
  return events < kMillion
             ? fmt::format("{} events", events)
             : fmt::format("{:.1f} million events",
                           static_cast<double>(events) / static_cast<double>(kMillion));
}

std::vector<RankView> ViewsOf(const std::vector<ShownRank>& ranks) {
  std::vector<RankView> views;
  for (const ShownRank& rank : ranks) {
    const LoadedRank& loaded = *rank.loaded;
    const bool there = rank.results != nullptr;
    views.push_back({&loaded.trace, there ? &rank.results->analysis : &loaded.provisional,
                     there ? &rank.results->model->accounts : &loaded.no_accounts,
                     there ? &rank.results->model->host : nullptr});
  }
  return views;
}

// Why the work ended early; empty when it did not.
template <class Work>
std::string ErrorOf(const std::filesystem::path& path, Work work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return fmt::format("{}: not enough memory: open fewer ranks, or close what else is open",
                       path.string());
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", path.string(), error.what());
  }
  return {};
}

}  // namespace

Loader::Loader(std::filesystem::path path) : path_(std::move(path)) {
  progress_.text = fmt::format("opening {}", path_.filename().string());
  for (const Work work : {&Loader::Read, &Loader::Analyse, &Loader::Publish}) Start(work);
}

Loader::~Loader() {
  Cancel();
  for (std::thread& thread : threads_) thread.join();
}

void Loader::Start(Work work) {
  ++running_;
  std::string error = ErrorOf(path_, [&] {
    threads_.emplace_back([this, work] {
      const std::string failure =
          ErrorOf(path_, [&] { RunUnlessCancelled(&cancel_, [&] { (this->*work)(); }); });
      if (!failure.empty()) End(failure);
      --running_;
    });
  });
  if (error.empty()) return;
  --running_;
  End(std::move(error));
}

LoadProgress Loader::progress() const {
  const std::lock_guard lock(mutex_);
  return progress_;
}

void Loader::Cancel() { End("cancelled"); }

void Loader::End(std::string error) {
  cancel_ = true;
  const std::lock_guard lock(mutex_);
  if (!progress_.done) {
    progress_.text = error;
    progress_.error = std::move(error);
    progress_.done = true;
    is_news_ = true;
  }
  changed_.notify_all();
}

bool Loader::Take(std::unique_ptr<Edition>& edition) {
  const std::lock_guard lock(mutex_);
  edition = std::move(next_);
  return std::exchange(is_news_, false);
}

void Loader::Read() {
  const Result<JobSource> source = OpenJob(path_);
  if (!source.ok()) return FinishReading({}, source.error());
  {
    const std::lock_guard lock(mutex_);
    source_ = source.value();
    progress_.still_recorded = source_.still_recorded;
    progress_.killed = source_.killed;
  }
  LoadOptions options;
  options.cancel = &cancel_;
  options.progress = [this](const LoadStatus& status) { Report(status); };
  options.notice = [this](const std::string& text) {
    const std::lock_guard lock(mutex_);
    notice_ = text;
  };
  Result<JobFacts> facts = JobFacts{};
  std::string error = ErrorOf(path_, [&] {
    facts =
        VisitJob(source.value(), options, [this](Trace trace) { return Add(std::move(trace)); });
  });
  if (error.empty() && !facts.ok()) error = facts.error();
  FinishReading(facts.ok() ? std::move(facts).value() : JobFacts{}, std::move(error));
}

void Loader::Report(const LoadStatus& status) {
  const std::lock_guard lock(mutex_);
  if (progress_.done) return;
  progress_.text = status.text;
  progress_.share = status.share;
  progress_.events = read_events_ + status.events;
}

Result<void> Loader::Add(Trace trace) {
  DropWhatNobodyShows(trace);
  auto rank = std::make_unique<LoadedRank>();
  rank->provisional.steps = FindNamedSteps(trace);
  rank->mean_step_ms = rank->provisional.steps.MeanMilliseconds();
  rank->trace = std::move(trace);
  const std::lock_guard lock(mutex_);
  if (progress_.done) return Error{progress_.error};
  read_events_ += EventsOf(rank->trace);
  progress_.events = read_events_;
  progress_.ranks = ranks_.size() + 1;
  ranks_.push_back({rank.get(), nullptr});
  loaded_.push_back(std::move(rank));
  unpublished_ = true;
  changed_.notify_all();
  return {};
}

void Loader::FinishReading(JobFacts facts, std::string error) {
  const std::lock_guard lock(mutex_);
  if (progress_.done) return;
  facts_ = std::move(facts);
  progress_.error = std::move(error);
  all_read_ = true;
  SayWhatIsLeft();
  changed_.notify_all();
}

void Loader::SayWhatIsLeft() {
  progress_.analysed = analysed_;
  if (!all_read_) return;
  progress_.text = fmt::format("analysing: {} of {} ranks", analysed_, ranks_.size());
  if (ranks_.empty()) return;
  progress_.share = static_cast<double>(analysed_) / static_cast<double>(ranks_.size());
}

// Begins when the first rank's lines are there: until then they are what is waited for.
void Loader::Analyse() {
  JobAnalyzer analyzer;
  for (size_t rank = 0;; ++rank) {
    const Trace* trace = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] {
        return cancel_ || (rank < ranks_.size() && is_published_) ||
               (all_read_ && rank == ranks_.size());
      });
      if (cancel_ || rank == ranks_.size()) break;
      trace = &ranks_[rank].loaded->trace;
    }
    auto model = std::make_shared<const RankModel>(*trace);
    RankDigest digest = DigestOf(*model, static_cast<int64_t>(rank));
    RankAnalysis analysis = digest.analysis;
    RateConfidence(analysis);
    const double own_step_ms = analysis.OwnStepMs();
    analyzer.Add(std::move(digest));
    Keep(rank, {std::move(model), std::move(analysis), LaunchLinks(*trace), own_step_ms});
  }
  Conclude(std::move(analyzer));
  const std::lock_guard lock(mutex_);
  all_analysed_ = true;
  changed_.notify_all();
}

// What the job as a whole adds to a rank is known when its analysis has long been shown.
void Loader::Conclude(JobAnalyzer analyzer) {
  std::unique_lock lock(mutex_);
  if (cancel_ || ranks_.empty() || !progress_.error.empty()) return;
  lock.unlock();  // source_ and facts_ change no more
  auto job = std::make_shared<const JobAnalysis>(std::move(analyzer).Finish(source_, facts_));
  lock.lock();
  job_ = std::move(job);
  for (const RankAnalysis& rank : job_->ranks) {
    ShownRank& shown = ranks_[static_cast<size_t>(rank.place)];
    if (shown.results->analysis == rank) continue;
    auto results = std::make_unique<RankResults>(*shown.results);
    results->analysis = rank;
    shown.results = results.get();
    results_.push_back(std::move(results));
  }
}

void Loader::Keep(size_t rank, RankResults results) {
  auto kept = std::make_unique<RankResults>(std::move(results));
  const std::lock_guard lock(mutex_);
  ranks_[rank].results = kept.get();
  results_.push_back(std::move(kept));
  ++analysed_;
  unpublished_ = true;
  SayWhatIsLeft();
  changed_.notify_all();
}

void Loader::Publish() {
  std::shared_ptr<const Lines> lines;
  bool is_last = false;
  while (!is_last) {
    auto edition = std::make_unique<Edition>();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return cancel_ || unpublished_ || all_analysed_; });
      if (is_published_) {
        changed_.wait_for(lock, kBetweenEditions, [&] { return cancel_ || all_analysed_; });
      }
      if (cancel_) return;
      unpublished_ = false;
      is_last = all_analysed_;
      edition->ranks = ranks_;
      if (is_last) {
        edition->job = job_;
        edition->unreadable = facts_.unreadable;
      }
    }
    if (!edition->ranks.empty()) {
      lines = std::make_shared<const Lines>(ViewsOf(edition->ranks), lines.get());
      edition->lines = lines;
    }
    const std::lock_guard lock(mutex_);
    if (progress_.done) return;
    next_ = std::move(edition);
    is_news_ = is_published_ = true;
    if (is_last) SayThatAllIsDone();
    changed_.notify_all();
  }
}

void Loader::SayThatAllIsDone() {
  progress_.done = true;
  progress_.share = 1;
  const size_t ranks = ranks_.size();
  progress_.text =
      fmt::format("{} rank{}, {}", ranks, ranks == 1 ? "" : "s", CountText(read_events_));
  if (!notice_.empty()) progress_.text += ". " + notice_;
  if (!progress_.error.empty()) progress_.text = progress_.error;
}

}  // namespace trainprof
