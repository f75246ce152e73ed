#include "viewer/document/document.h"

#include <algorithm>
#include <tuple>

#include "viewer/document/loader.h"

namespace trainprof {

// What is on screen.
struct Document::Shown {
  explicit Shown(std::filesystem::path path) : loader(std::move(path)) {}

  const ShownRank& Rank(uint32_t rank) const { return edition.ranks[rank]; }
  void OrderRanks();

  Loader loader;  // owns what the rest refers to
  Edition edition;
  std::unique_ptr<LaneStore> store;
  // Of ranks that were asked for before their analysis was there.
  std::vector<std::unique_ptr<const LaunchLinks>> links;
  std::string kind;
  uint32_t slowest = 0;
  uint32_t median = 0;
};

// By mean step but for waits, until it is known which rank the others wait for.
void Document::Shown::OrderRanks() {
  std::vector<std::tuple<double, int64_t, uint32_t>> order;
  for (uint32_t r = 0; r < edition.ranks.size(); ++r) {
    const ShownRank& rank = edition.ranks[r];
    const double mean =
        rank.results != nullptr ? rank.results->own_step_ms : rank.loaded->mean_step_ms;
    order.emplace_back(-mean, rank.loaded->trace.rank, r);
  }
  if (order.empty()) return;
  std::sort(order.begin(), order.end());
  slowest = std::get<uint32_t>(order.front());
  if (edition.job != nullptr) {
    slowest = static_cast<uint32_t>(trainprof::SlowestRank(*edition.job).place);
  }
  median = std::get<uint32_t>(order[order.size() / 2]);
}

Document::Document(std::filesystem::path path) : shown_(std::make_unique<Shown>(std::move(path))) {}

Document::~Document() = default;

const std::filesystem::path& Document::path() const { return shown_->loader.path(); }

LoadProgress Document::progress() const { return shown_->loader.progress(); }

void Document::Cancel() { shown_->loader.Cancel(); }

bool Document::Stopped() const { return shown_->loader.Stopped(); }

bool Document::Update() {
  std::unique_ptr<Edition> edition;
  const bool is_news = shown_->loader.Take(edition);
  if (edition == nullptr || edition->lines == nullptr) return is_news;
  shown_->store = shown_->store == nullptr
                      ? std::make_unique<LaneStore>(edition->lines)
                      : std::make_unique<LaneStore>(edition->lines, std::move(*shown_->store));
  shown_->edition = std::move(*edition);
  shown_->links.resize(ranks());
  shown_->kind = KindName(TraceOf(0));
  shown_->OrderRanks();
  return is_news;
}

const Lines* Document::lines() const { return shown_->edition.lines.get(); }
const std::shared_ptr<const Lines>& Document::shared_lines() const { return shown_->edition.lines; }
LaneStore& Document::store() { return *shown_->store; }
size_t Document::ranks() const { return shown_->edition.ranks.size(); }

const Trace& Document::TraceOf(uint32_t rank) const { return shown_->Rank(rank).loaded->trace; }

const RankAnalysis* Document::Analysis(uint32_t rank) const {
  const RankResults* results = shown_->Rank(rank).results;
  return results != nullptr ? &results->analysis : nullptr;
}

const RankModel* Document::Model(uint32_t rank) const {
  const RankResults* results = shown_->Rank(rank).results;
  return results != nullptr ? results->model.get() : nullptr;
}

const Steps& Document::StepsOf(uint32_t rank) const {
  return lines()->ranks()[rank].analysis->steps;
}

uint32_t Document::SlowestRank() const { return shown_->slowest; }
uint32_t Document::MedianRank() const { return shown_->median; }

const LaunchLinks& Document::Links(uint32_t rank) {
  if (const RankResults* results = shown_->Rank(rank).results) return results->links;
  std::unique_ptr<const LaunchLinks>& links = shown_->links[rank];
  if (!links) links = std::make_unique<LaunchLinks>(LaunchLinks::Unfinished(TraceOf(rank)));
  return *links;
}

const std::string& Document::kind() const { return shown_->kind; }

const JobAnalysis* Document::job() const { return shown_->edition.job.get(); }

const std::vector<std::string>& Document::unreadable() const { return shown_->edition.unreadable; }

}  // namespace trainprof
