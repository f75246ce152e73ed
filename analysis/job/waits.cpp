#include "analysis/job/waits.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

// Lengths come from files: those of all may pass 64 bits.
void Add(Duration& sum, Duration more) { sum.ns = Apart(sum.ns, -more.ns); }

// The step that a rank counts a moment to; a trace without steps is one.
std::optional<int64_t> StepAt(const RankAnalysis& rank, TraceTime at) {
  if (rank.steps.steps.empty()) return 0;
  const Step* const step = rank.steps.At(at);
  return step == nullptr ? std::nullopt : std::optional(step->number);
}

// What a rank waited for others since it was last in a communicator: it brings that along.
struct Debt {
  uint32_t communicator = 0;
  Duration sum;
  std::map<uint32_t, Duration> roots;
};

// What a rank was charged over the meetings: in each communicator only what was not charged elsewhere since this
// one's last meeting. It is the same lateness, seen again by others.
class Ledger {
 public:
  explicit Ledger(size_t ranks) : charges_(ranks) {}

  // What of `amount` is new, at the meeting of that place in the order; `since`: the communicator's last one.
  Duration Add(uint32_t rank, Duration amount, int64_t at, int64_t since) {
    std::vector<Charge>& charges = charges_[rank];
    Duration known;
    if (!charges.empty()) {
      const auto after = std::partition_point(charges.begin(), charges.end(),
                                              [&](const Charge& c) { return c.at <= since; });
      const Duration until = after == charges.begin() ? Duration{} : (after - 1)->total;
      known = Duration{Apart(charges.back().total.ns, until.ns)};
    }
    const Duration more = amount - std::min(amount, known);
    if (more.ns > 0) {
      Duration total = charges.empty() ? Duration{} : charges.back().total;
      trainprof::Add(total, more);
      charges.push_back({at, total});
    }
    return more;
  }

 private:
  struct Charge {
    int64_t at = 0;
    Duration total;
  };
  std::vector<std::vector<Charge>> charges_;  // by rank
};

class WaitCounter {
 public:
  WaitCounter(std::span<const RankDigest> digests, const Meetings& meetings, JobWaits& result)
      : digests_(digests),
        meetings_(meetings),
        result_(result),
        last_(meetings.communicators.size(), -1),
        leads_(digests.size()),
        caused_waits_(digests.size()) {
    debts_.resize(digests.size());
    awaited_.resize(digests.size());
    for (uint32_t c = 0; c < meetings.communicators.size(); ++c) {
      for (const uint32_t rank : meetings.communicators[c].ranks) {
        debts_[rank].push_back({c, {}, {}});
      }
    }
  }

  void Count() {
    for (const uint32_t m : Order()) {
      CancelPoint(m);
      CountOne(meetings_.meetings[m]);
      last_[meetings_.meetings[m].communicator] = place_++;
    }
    for (size_t rank = 0; rank < awaited_.size(); ++rank) {
      RankWaits& waits = result_.ranks[rank];
      for (const auto& [root, wait] : awaited_[rank]) {
        if (waits.awaited && wait <= waits.awaited_wait) continue;
        waits.awaited = root;
        waits.awaited_wait = wait;
      }
    }
    JudgeSteps();
  }

 private:
  // As they ended, by the clock of the lowest rank: what a rank brings along comes from an earlier one.
  std::vector<uint32_t> Order() const {
    std::vector<std::pair<__int128, uint32_t>> order;
    for (uint32_t m = 0; m < meetings_.meetings.size(); ++m) {
      const Attendance& first = meetings_.Of(meetings_.meetings[m]).front();
      const auto& clock = result_.clocks[first.rank];
      const __int128 ahead = clock ? clock->ahead.ns : 0;
      order.emplace_back(
          __int128{first.when.end.ns} + digests_[first.rank].analysis.base_ns - ahead, m);
    }
    std::sort(order.begin(), order.end());
    std::vector<uint32_t> meetings;
    for (const auto& [end, m] : order) meetings.push_back(m);
    return meetings;
  }

  Debt& DebtOf(uint32_t rank, uint32_t communicator) {
    return *std::lower_bound(debts_[rank].begin(), debts_[rank].end(), communicator,
                             [](const Debt& debt, uint32_t c) { return debt.communicator < c; });
  }

  void CountOne(const Meeting& meeting) {
    const std::span<const Attendance> present = meetings_.Of(meeting);
    const auto last = std::min_element(
        present.begin(), present.end(),
        [](const Attendance& a, const Attendance& b) { return a.when.Length() < b.when.Length(); });
    const Duration exchange = last->when.Length();
    Duration second{INT64_MAX};
    Duration noise;
    for (const Attendance& each : present) {
      if (&each != &*last) second = std::min(second, each.when.Length());
      if (const auto& clock = result_.clocks[each.rank]) noise = std::max(noise, clock->spread);
    }
    const Debt& brought = DebtOf(last->rank, meeting.communicator);
    const Duration inherited = brought.sum;
    uint32_t root = last->rank;
    Duration most;
    for (const auto& [of, wait] : brought.roots) {
      if (wait > most) most = wait, root = of;
    }
    std::optional<int64_t> step;
    Duration longest;
    std::vector<std::pair<uint32_t, Duration>> waited;
    for (const Attendance& each : present) {
      Duration wait = each.when.Length() - exchange;
      if (wait <= noise) wait = {};
      const auto counted = StepAt(digests_[each.rank].analysis, each.when.begin);
      if (counted) CountWait(each, wait, exchange, std::min(wait, inherited), root, last->rank);
      if (!step) step = counted;
      if (wait.ns > 0) waited.emplace_back(each.rank, wait);
      if (counted) longest = std::max(longest, wait);
    }
    if (step) {
      auto& caused = caused_[*step];
      const Duration of_root = root == last->rank ? Duration{} : std::min(longest, inherited);
      const Duration lead = second - exchange <= noise ? Duration{} : second - exchange;
      const Duration root_lead = root == last->rank ? Duration{} : std::min(lead, inherited);
      Charge(caused, root, of_root, root_lead, meeting);
      Charge(caused, last->rank, longest - of_root, lead - root_lead, meeting);
    }
    PassOn(meeting, waited, inherited, root, last->rank);
  }

  void CountWait(const Attendance& each, Duration wait, Duration exchange, Duration of_root,
                 uint32_t root, uint32_t last) {
    RankWaits& waits = result_.ranks[each.rank];
    ++waits.collectives;
    Add(waits.wait, wait);
    Add(waits.exchange, exchange);
    // What was hidden is taken to be its begin, as work that was already under way is.
    const Duration hidden{Apart(each.when.Length().ns, each.exposed.ns)};
    Add(waits.exposed_wait, std::max(Duration{}, wait - std::max(Duration{}, hidden)));
    if (of_root.ns > 0) Add(awaited_[each.rank][root], of_root);
    if (wait > of_root) Add(awaited_[each.rank][last], wait - of_root);
  }

  void Charge(std::map<uint32_t, Duration>& step, uint32_t rank, Duration wait, Duration lead,
              const Meeting& meeting) {
    const int64_t since = last_[meeting.communicator];
    Add(result_.ranks[rank].lead, leads_.Add(rank, lead, place_, since));
    const Duration caused = caused_waits_.Add(rank, wait, place_, since);
    if (caused.ns == 0) return;
    Add(result_.ranks[rank].caused, caused);
    Add(step[rank], caused);
  }

  void PassOn(const Meeting& meeting, std::span<const std::pair<uint32_t, Duration>> waited,
              Duration inherited, uint32_t root, uint32_t last) {
    for (const auto& [rank, wait] : waited) {
      for (Debt& debt : debts_[rank]) {
        if (debt.communicator == meeting.communicator) continue;
        Add(debt.sum, wait);
        const Duration of_root = std::min(wait, inherited);
        if (of_root.ns > 0) Owe(debt, root, of_root);
        if (wait > of_root) Owe(debt, last, wait - of_root);
      }
    }
    for (const Attendance& each : meetings_.Of(meeting)) {
      Debt& debt = DebtOf(each.rank, meeting.communicator);
      debt.sum = {};
      debt.roots.clear();
    }
  }

  // A communicator that never meets again gathers no list of all ranks.
  static void Owe(Debt& debt, uint32_t root, Duration wait) {
    constexpr size_t kMostRoots = 8;
    Add(debt.roots[root], wait);
    if (debt.roots.size() <= kMostRoots) return;
    debt.roots.erase(
        std::min_element(debt.roots.begin(), debt.roots.end(),
                         [](const auto& a, const auto& b) { return a.second < b.second; }));
  }

  // In which steps others waited, and for whom most.
  void JudgeSteps() {
    result_.steps = static_cast<int64_t>(caused_.size());
    for (const auto& [number, caused] : caused_) {
      if (caused.empty()) continue;
      const auto most =
          std::max_element(caused.begin(), caused.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const RankAnalysis& rank = digests_[most->first].analysis;
      if (most->second.ToMilliseconds() < kWaitWorthSaying * rank.PerStepMs(rank.window)) continue;
      ++result_.late_steps;
      ++result_.ranks[most->first].late_steps;
    }
  }

  std::span<const RankDigest> digests_;
  const Meetings& meetings_;
  JobWaits& result_;
  int64_t place_ = 0;          // in the order of meetings
  std::vector<int64_t> last_;  // by communicator: the place of its last meeting
  Ledger leads_;
  Ledger caused_waits_;
  std::vector<std::vector<Debt>> debts_;  // by rank, by communicator
  std::vector<std::map<uint32_t, Duration>> awaited_;
  std::map<int64_t, std::map<uint32_t, Duration>> caused_;  // by step and rank
};

// See RankWaits::brought. Of the first meeting of all ranks in the first step of each.
void CountBrought(std::span<const RankDigest> digests, const Meetings& meetings, JobWaits& result) {
  for (const Meeting& meeting : meetings.meetings) {
    const std::span<const Attendance> present = meetings.Of(meeting);
    if (present.size() != digests.size()) continue;
    std::vector<int64_t> late;
    std::vector<int64_t> within;
    bool is_first = true;
    for (const Attendance& each : present) {
      const Steps& steps = digests[each.rank].analysis.steps;
      is_first = is_first && steps.count() > 0 && steps.steps[0].span.Contains(each.when.begin);
      if (!is_first) break;
      late.push_back(-each.when.Length().ns);
      within.push_back((each.when.begin - steps.steps[0].span.begin).ns);
    }
    if (!is_first) continue;
    const auto middle = [](std::vector<int64_t> values) {
      std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2),
                       values.end());
      return values[values.size() / 2];
    };
    const int64_t usual_late = middle(late);
    const int64_t usual_within = middle(within);
    for (size_t i = 0; i < present.size(); ++i) {
      const int64_t later = Apart(late[i], usual_late);
      const int64_t slower = Apart(within[i], usual_within);
      const int64_t brought = std::min(later, Apart(later, slower));
      result.ranks[present[i].rank].brought = {std::max<int64_t>(0, brought)};
    }
    return;
  }
}

// Sets `late` and `changes`.
void FindLate(std::span<const RankDigest> digests, JobWaits& waits) {
  const auto per_step = [&](size_t rank, Duration total) {
    return Duration{total.ns / digests[rank].analysis.steps.divisor()};
  };
  uint32_t first = 0;
  for (uint32_t rank = 1; rank < waits.ranks.size(); ++rank) {
    const auto caused = [&](uint32_t r) { return per_step(r, waits.ranks[r].caused); };
    if (caused(rank) > caused(first)) first = rank;
  }
  const RankAnalysis& rank = digests[first].analysis;
  const double step_ms = rank.PerStepMs(rank.window);
  if (waits.late_steps == 0 ||
      per_step(first, waits.ranks[first].caused).ToMilliseconds() < kWaitWorthSaying * step_ms) {
    return;
  }
  waits.late.push_back(first);
  int64_t steps_of_late = waits.ranks[first].late_steps;
  std::vector<uint32_t> together;
  for (uint32_t other = 0; other < waits.ranks.size(); ++other) {
    if (other == first || waits.ranks[other].late_steps == 0) continue;
    const Duration own = per_step(first, waits.ranks[first].wait);
    const Duration others = per_step(other, waits.ranks[other].wait);
    if (Duration{std::abs(own.ns - others.ns)}.ToMilliseconds() < kWaitWorthSaying * step_ms) {
      together.push_back(other);
      steps_of_late += waits.ranks[other].late_steps;
    }
  }
  // Where most ranks are so, none of them is later than others.
  if (2 * (together.size() + 1) <= waits.ranks.size()) {
    waits.late.insert(waits.late.end(), together.begin(), together.end());
  } else {
    steps_of_late = waits.ranks[first].late_steps;
  }
  waits.changes = 2 * steps_of_late < waits.late_steps;
  if (waits.changes) waits.late.resize(1);
}

}  // namespace

JobWaits WaitsOf(std::span<const RankDigest> digests) {
  JobWaits waits;
  const Meetings meetings = MatchCollectives(digests);
  waits.doubts = meetings.doubts;
  if (meetings.meetings.empty()) return waits;
  std::vector<int64_t> base_ns;
  for (const RankDigest& digest : digests) base_ns.push_back(digest.analysis.base_ns);
  waits.clocks = ClockOffsets(meetings, base_ns);
  waits.collectives = static_cast<int64_t>(meetings.meetings.size());
  waits.ranks.resize(digests.size());
  waits.is_whole = std::all_of(meetings.communicators.begin(), meetings.communicators.end(),
                               [](const Communicator& each) { return each.is_whole; });
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    waits.ranks[rank].alone = meetings.alone[rank];
  }
  WaitCounter(digests, meetings, waits).Count();
  CountBrought(digests, meetings, waits);
  FindLate(digests, waits);
  waits.is_whole = waits.is_whole && waits.doubts.empty() &&
                   std::all_of(waits.ranks.begin(), waits.ranks.end(),
                               [](const RankWaits& rank) { return rank.collectives > 0; });
  return waits;
}

std::vector<std::optional<Duration>> SlackOf(const JobWaits& waits,
                                             std::span<const RankAnalysis> ranks) {
  std::vector<std::optional<Duration>> slack(ranks.size());
  std::optional<Duration> least;
  for (size_t rank = 0; rank < waits.ranks.size(); ++rank) {
    if (waits.ranks[rank].collectives == 0) continue;
    slack[rank] = Duration{waits.ranks[rank].wait.ns / ranks[rank].steps.divisor()};
    least = least ? std::min(*least, *slack[rank]) : *slack[rank];
  }
  for (auto& each : slack) {
    if (each) *each -= *least;
  }
  return slack;
}

std::vector<std::optional<Duration>> LatenessOf(const JobWaits& waits,
                                                std::span<const RankAnalysis> ranks) {
  std::vector<std::optional<Duration>> late = SlackOf(waits, ranks);
  std::optional<Duration> most;
  for (const auto& slack : late) most = std::max(most, slack);
  for (auto& each : late) {
    if (each) each = *most - *each;
  }
  return late;
}

}  // namespace trainprof
