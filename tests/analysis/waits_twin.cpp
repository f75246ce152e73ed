#include "tests/analysis/waits_twin.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tests/support/random_trace.h"

namespace trainprof {
namespace {

constexpr int64_t kMs = 1'000'000;

// In true time, by the definition: each rank has a moment at which it is ready; a collective begins when its last
// rank is, and ends for all `exchange` later.
class Simulator {
 public:
  Simulator(uint64_t seed, const JobDraw& draw) : random_(seed), draw_(draw) {
    const auto n = static_cast<size_t>(draw.ranks);
    ready_.assign(n, 0);
    job_.wait_ns.assign(n, 0);
    job_.lead_ns.assign(n, 0);
    job_.root_ns.assign(n, std::vector<int64_t>(n, 0));
    job_.digests.resize(n);
    // Of each rank, by communicator: what it waited since it was last there, by root.
    brought_.resize(n);
    charged_.resize(n);
    for (int r = 0; r < draw.ranks; ++r) {
      apart_.push_back(r == 0 ? 0 : random_.Between(-draw.most_apart_ns, draw.most_apart_ns));
      drift_ppm_.push_back(r == 0 ? 0 : random_.Between(-draw.most_drift_ppm, draw.most_drift_ppm));
    }
  }

  DrawnJob Run() && {
    for (int step = 0; step < draw_.steps; ++step) RunStep(step);
    const int64_t middle = ready_[0] / 2;
    for (int r = 0; r < draw_.ranks; ++r) {
      RankAnalysis& rank = job_.digests[static_cast<size_t>(r)].analysis;
      rank.rank = r;
      rank.rank_known = true;
      rank.place = r;
      rank.world_size = draw_.ranks;
      std::vector<Interval> spans;
      for (const Step& each : rank.steps.steps) spans.push_back(each.span);
      rank.steps.window = IntervalSet::Union(spans);
      rank.window = rank.steps.window.Total();
      rank.device_steps = rank.steps;
      rank.device_window = rank.window;
      job_.digests[static_cast<size_t>(r)].host_steps.resize(rank.steps.count());
      job_.clock_ns.push_back(Clock(r, middle) - middle);
    }
    return std::move(job_);
  }

 private:
  int64_t Clock(int rank, int64_t time) const {
    const auto r = static_cast<size_t>(rank);
    return time + apart_[r] + time / 1000 * drift_ppm_[r] / 1000;
  }

  void RunStep(int step) {
    std::vector<int64_t> begin = ready_;
    for (int m = 0; m < draw_.meetings; ++m) {
      for (int r = 0; r < draw_.ranks; ++r) {
        ready_[static_cast<size_t>(r)] += random_.Between(1 * kMs, 3 * kMs);
        if (m == 0 && r == draw_.late_rank) ready_[static_cast<size_t>(r)] += draw_.late_ns;
      }
      if (draw_.has_pairs) {
        for (const auto& [end, r, exchange] : Pairs()) {
          Meet({r, r + 1}, fmt::format("[{}, {}]", r, r + 1), 1 + r / 2, exchange);
        }
        for (auto& ready : ready_) ready += random_.Between(0, kMs);
      }
      std::vector<int> all;
      for (int r = 0; r < draw_.ranks; ++r) all.push_back(r);
      Meet(all, "", 0, random_.Between(100'000, 500'000));
    }
    for (int r = 0; r < draw_.ranks; ++r) {
      // A step ends at the next one's begin.
      const Interval span{{Clock(r, begin[static_cast<size_t>(r)])},
                          {Clock(r, ready_[static_cast<size_t>(r)])}};
      job_.digests[static_cast<size_t>(r)].analysis.steps.steps.push_back(
          {.range = span, .span = span, .device = span, .number = step});
    }
  }

  // End, first rank and exchange of each pair's meeting, in the order of their ends.
  std::vector<std::tuple<int64_t, int, int64_t>> Pairs() {
    std::vector<std::tuple<int64_t, int, int64_t>> pairs;
    for (int r = 0; r + 1 < draw_.ranks; r += 2) {
      const int64_t exchange = random_.Between(100'000, 500'000);
      pairs.emplace_back(std::max(Ready(r), Ready(r + 1)) + exchange, r, exchange);
    }
    std::sort(pairs.begin(), pairs.end());
    return pairs;
  }

  // What others were charged for it since this communicator met is the same lateness.
  void ChargeLead(int rank, int64_t lead, int communicator) {
    std::map<int, int64_t>& charged = charged_[static_cast<size_t>(rank)];
    const int64_t more = std::max<int64_t>(0, lead - charged[communicator]);
    job_.lead_ns[static_cast<size_t>(rank)] += more;
    for (int c = 0; c <= (draw_.ranks + 1) / 2; ++c) charged[c] += more;
  }

  void Meet(const std::vector<int>& members, const std::string& names, int communicator,
            int64_t exchange) {
    int last = members[0];
    for (int r : members) {
      if (Ready(r) > Ready(last)) last = r;
    }
    const int64_t end = Ready(last) + exchange;
    int64_t second = INT64_MIN;
    for (int r : members) {
      if (r != last) second = std::max(second, Ready(r));
    }
    // What the last one had waited elsewhere is not its own doing.
    const std::map<int, int64_t> brought = brought_[static_cast<size_t>(last)][communicator];
    int64_t inherited = 0;
    int root = last;
    int64_t most = 0;
    for (const auto& [of, ns] : brought) {
      inherited += ns;
      if (ns > most) most = ns, root = of;
    }
    const int64_t lead = Ready(last) - second;
    const int64_t root_lead = root == last ? 0 : std::min(lead, inherited);
    ChargeLead(root, root_lead, communicator);
    ChargeLead(last, lead - root_lead, communicator);
    for (auto& charged : charged_) charged[communicator] = 0;
    const int64_t sequence = sequence_[communicator]++;
    for (int r : members) {
      const auto i = static_cast<size_t>(r);
      const int64_t wait = Ready(last) - Ready(r);
      const int64_t of_root = std::min(wait, inherited);
      job_.wait_ns[i] += wait;
      job_.root_ns[i][static_cast<size_t>(root)] += of_root;
      job_.root_ns[i][static_cast<size_t>(last)] += wait - of_root;
      Record(r, names, sequence, {{Clock(r, Ready(r))}, {Clock(r, end + Noise())}});
      for (int c : {0, 1 + r / 2}) {
        if (c == communicator || wait == 0) continue;
        if (of_root > 0) brought_[i][c][root] += of_root;
        if (wait > of_root) brought_[i][c][last] += wait - of_root;
      }
    }
    for (int r : members) {
      brought_[static_cast<size_t>(r)][communicator].clear();
      ready_[static_cast<size_t>(r)] = end;
    }
  }

  int64_t Noise() {
    return draw_.end_noise_ns == 0 ? 0 : random_.Between(-draw_.end_noise_ns, draw_.end_noise_ns);
  }
  int64_t Ready(int rank) const { return ready_[static_cast<size_t>(rank)]; }

  void Record(int rank, const std::string& members, int64_t sequence, const Interval& when) {
    std::vector<Collectives>& all = job_.digests[static_cast<size_t>(rank)].collectives;
    auto same = std::find_if(all.begin(), all.end(),
                             [&](const Collectives& each) { return each.members == members; });
    if (same == all.end()) {
      all.push_back({members.empty() ? "" : "pair", members, "allreduce", 0, draw_.numbered, {}});
      same = all.end() - 1;
    }
    const auto place = static_cast<int64_t>(same->calls.size());
    same->calls.push_back({draw_.numbered ? sequence : place, when, when.Length()});
  }

  Random random_;
  const JobDraw draw_;
  std::vector<int64_t> ready_;
  std::vector<int64_t> apart_;
  std::vector<int64_t> drift_ppm_;
  std::vector<std::map<int, std::map<int, int64_t>>> brought_;
  // Of each rank, by communicator: the lead it was charged since that one last met.
  std::vector<std::map<int, int64_t>> charged_;
  std::map<int, int64_t> sequence_;
  DrawnJob job_;
};

}  // namespace

DrawnJob DrawJob(uint64_t seed, const JobDraw& draw) { return Simulator(seed, draw).Run(); }

}  // namespace trainprof
