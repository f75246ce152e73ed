#include "profiler/report/ranks_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "analysis/job/verdict.h"
#include "analysis/words.h"
#include "profiler/report/coverage_text.h"

namespace trainprof {
namespace {

constexpr size_t kMostRankLines = 16;  // more ranks than that are shown in groups
constexpr size_t kFindingWidth = 90;

// "5.1 ms", "4.9 to 5.3 ms": of values in ms.
std::string RangeText(double least, double most) {
  const std::string low = TimeText(least);
  const std::string high = TimeText(most);
  return low == high ? low : low + " to " + high;
}

// Ranks that are alike in what a line says of them.
struct Alike {
  std::vector<size_t> ranks;  // indices
  std::vector<int64_t> numbers;
};

bool IsLate(const JobWaits& waits, size_t rank) {
  return std::find(waits.late.begin(), waits.late.end(), rank) != waits.late.end();
}

// Whom the rank waits for: an index, or none where that is not worth a word.
std::optional<uint32_t> AwaitedBy(const JobAnalysis& job, size_t rank) {
  if (!job.waits.Any()) return std::nullopt;
  const RankWaits& waits = job.waits.ranks[rank];
  const double step_ms = job.ranks[rank].PerStepMs(job.ranks[rank].window);
  const bool is_worth = job.ranks[rank].PerStepMs(waits.wait) >= kWaitWorthSaying * step_ms;
  return is_worth ? waits.awaited : std::nullopt;
}

std::vector<Alike> Groups(const JobAnalysis& job) {
  std::vector<Alike> groups;
  std::map<std::tuple<bool, std::optional<uint32_t>, std::string_view, bool>, size_t> places;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const RankAnalysis& analysis = job.ranks[rank];
    const bool has = !analysis.findings.empty();
    const auto key = std::tuple(
        IsLate(job.waits, rank), job.waits.changes ? std::nullopt : AwaitedBy(job, rank),
        has ? std::string_view(analysis.findings[0].code) : "", analysis.devices.empty());
    const bool alone = job.ranks.size() <= kMostRankLines;
    const auto [place, is_new] = places.try_emplace(key, groups.size());
    if (is_new || alone) {
      place->second = groups.size();
      groups.emplace_back();
    }
    groups[place->second].ranks.push_back(rank);
    groups[place->second].numbers.push_back(analysis.rank);
  }
  return groups;
}

// Least and most of a value over the group.
template <class Get>
std::string RangeOf(const Alike& group, Get get) {
  double least = get(group.ranks[0]);
  double most = least;
  for (const size_t rank : group.ranks) {
    least = std::min(least, get(rank));
    most = std::max(most, get(rank));
  }
  return RangeText(least, most);
}

std::string WaitsOf(const JobAnalysis& job, const Alike& group) {
  const size_t first = group.ranks[0];
  const auto wait_ms = [&](size_t rank) {
    return job.ranks[rank].PerStepMs(job.waits.ranks[rank].wait);
  };
  const char* const per_step = job.ranks[first].steps.count() > 0 ? "/step" : "";
  std::string text;
  if (!job.waits.Any() || job.waits.ranks[first].collectives == 0) return "";
  if (IsLate(job.waits, first) && !job.waits.changes) {
    const auto lead_ms = [&](size_t rank) {
      return job.ranks[rank].PerStepMs(job.waits.ranks[rank].lead);
    };
    text += fmt::format("comes last, {}{} behind the next; ", RangeOf(group, lead_ms), per_step);
  }
  text += fmt::format("waits {}{}", RangeOf(group, wait_ms), per_step);
  if (const auto awaited = AwaitedBy(job, first)) {
    const auto part_ms = [&](size_t rank) {
      return job.ranks[rank].PerStepMs(job.waits.ranks[rank].awaited_wait);
    };
    text +=
        fmt::format(", {} of it for rank {}", RangeOf(group, part_ms), job.ranks[*awaited].rank);
  }
  return text + "; ";
}

std::string FindingOf(const JobAnalysis& job, const Alike& group) {
  const auto gain = [&](size_t rank) {
    const std::vector<Finding>& findings = job.ranks[rank].findings;
    return findings.empty() ? 0 : findings[0].gain.high_ms_per_step;
  };
  const size_t most = *std::max_element(group.ranks.begin(), group.ranks.end(),
                                        [&](size_t a, size_t b) { return gain(a) < gain(b); });
  if (job.ranks[most].findings.empty()) return "no finding";
  const Finding& finding = job.ranks[most].findings[0];
  const std::string of =
      group.ranks.size() > 1 ? fmt::format(", of rank {}", job.ranks[most].rank) : "";
  return fmt::format("{} {} (gain up to {}{}): {}", finding.code, finding.rule,
                     TimeText(finding.gain.high_ms_per_step), of,
                     FirstWords(finding.title, kFindingWidth));
}

std::string Verdicts(const JobAnalysis& job, const std::vector<Alike>& groups) {
  std::string out;
  for (const Alike& group : groups) {
    const RankAnalysis& rank = job.ranks[group.ranks[0]];
    if (group.ranks.size() == 1) {
      const std::string file = std::filesystem::path(rank.path).filename().string();
      out += fmt::format("rank {:>4}  {}  ({})\n", rank.rank, Verdict(rank), file);
      continue;
    }
    const auto median = [&](size_t r) { return job.ranks[r].steps.Median().ToMilliseconds(); };
    const std::string steps =
        rank.steps.count() == 0 ? "" : fmt::format("median step {}; ", RangeOf(group, median));
    out += fmt::format(
        "{}\n", Wrap(fmt::format("{} ranks ({}): {}the first, rank {}: {}", group.ranks.size(),
                                 RanksText(job, group.numbers), steps, rank.rank, Verdict(rank)),
                     4, kTextWidth));
  }
  return out;
}

// "Clocks, by when collectives ended, beside rank 0's: ..."
std::string ClocksText(const JobAnalysis& job) {
  constexpr size_t kMostListed = 8;
  std::vector<std::pair<uint32_t, ClockOffset>> apart;
  Duration farthest;
  Duration widest;
  int64_t known = 0;
  for (uint32_t rank = 0; rank < job.waits.clocks.size(); ++rank) {
    const auto& clock = job.waits.clocks[rank];
    if (!clock || clock->collectives == 0) continue;
    ++known;
    farthest = std::max(farthest, Duration{std::abs(clock->ahead.ns)});
    widest = std::max(widest, clock->spread);
    apart.emplace_back(rank, *clock);
  }
  if (known == 0) return {};
  std::stable_sort(apart.begin(), apart.end(), [](const auto& a, const auto& b) {
    return std::abs(a.second.ahead.ns) > std::abs(b.second.ahead.ns);
  });
  std::string text = fmt::format(
      "Clocks, by the ends of {}: at most {} apart; ends differ by {} or less half of the time",
      Counted(job.waits.collectives, "collective", "collectives"),
      TimeText(farthest.ToMilliseconds()), TimeText(widest.ToMilliseconds()));
  const size_t listed = farthest <= Milliseconds(1) ? 0 : std::min(apart.size(), kMostListed);
  for (size_t i = 0; i < listed; ++i) {
    const auto& [rank, clock] = apart[i];
    const bool ahead = clock.ahead.ns >= 0;
    text += fmt::format("{} rank {} is {} {} rank {}", i == 0 ? ";" : ",", job.ranks[rank].rank,
                        TimeText(std::abs(clock.ahead.ToMilliseconds())),
                        ahead ? "ahead of" : "behind", job.ranks[clock.beside].rank);
    constexpr double kDriftWorthSaying = 1e-6;
    if (std::abs(clock.drift) >= kDriftWorthSaying) {
      text += fmt::format(" ({:+.1f} us/s)", clock.drift * 1e6);
    }
  }
  if (listed > 0 && listed < apart.size())
    text += fmt::format(", and {} more", apart.size() - listed);
  return Wrap(text, 4, kTextWidth) + "\n";
}

}  // namespace

std::string RanksOverview(const JobAnalysis& job, const Style& style) {
  const std::vector<Alike> groups = Groups(job);
  std::string out = Verdicts(job, groups);
  out += style.Bold("\nRanks: what they wait for each other, and their own first finding\n");
  for (const Alike& group : groups) {
    out += Wrap(fmt::format("{:<9} {}{}", RanksText(job, group.numbers), WaitsOf(job, group),
                            FindingOf(job, group)),
                4, kTextWidth) +
           "\n";
  }
  const JobWaits& waits = job.waits;
  if (waits.Any() && !waits.is_whole) {
    out += Wrap(
               "Not all ranks' traces or collectives are there: who comes later than all of these "
               "is not seen.",
               4, kTextWidth) +
           "\n";
  }
  for (const std::string& doubt : waits.doubts) {
    out += Wrap("Not matched: " + doubt, 4, kTextWidth) + "\n";
  }
  return out + ClocksText(job);
}

}  // namespace trainprof
