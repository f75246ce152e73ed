// Which ranks became late, and what they do longer: means of ranks hide both.
#include <algorithm>
#include <cmath>

#include "analysis/job/diff_rows.h"

namespace trainprof {
namespace {

bool IsLate(const JobAnalysis& job, size_t rank) {
  const std::vector<uint32_t>& late = job.waits.late;
  return !job.waits.changes && job.late[rank] &&
         std::find(late.begin(), late.end(), rank) != late.end();
}

// Mean of the runs in which the rank is late; 0 where it is not in most of them.
double LateMs(std::span<const JobAnalysis> jobs, size_t rank) {
  double sum = 0;
  size_t runs = 0;
  for (const JobAnalysis& job : jobs) {
    if (!IsLate(job, rank)) continue;
    sum += job.late[rank]->ToMilliseconds();
    ++runs;
  }
  return 2 * runs > jobs.size() ? sum / static_cast<double>(runs) : 0;
}

// What differs most in the direction of `sign`, and enough to be worth saying.
DiffRow CauseIn(std::vector<DiffRow> parts, double sign, double least_ms) {
  for (DiffRow& part : parts) {
    const bool is_cause = part.name != Name(DeviceClass::kExposedCommunication) &&
                          part.name != Name(HostClass::kRankWait);
    const bool is_noise = part.bounds && !part.IsClear();
    if (is_cause && !is_noise && sign * part.Difference() >= least_ms) return std::move(part);
  }
  return {};
}

}  // namespace

std::vector<LateRankDiff> LateRanks(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b,
                                    const DiffRows& rows) {
  std::vector<LateRankDiff> ranks;
  if (!rows.HasRanks()) return ranks;
  const DiffRow step = rows.Step();
  const double least_ms = kWaitWorthSaying * std::min(step.a_ms, step.b_ms);
  for (size_t rank = 0; rank < a[0].ranks.size(); ++rank) {
    const double a_ms = LateMs(a, rank);
    const double b_ms = LateMs(b, rank);
    if (a_ms == b_ms || std::abs(b_ms - a_ms) < least_ms) continue;
    const double sign = b_ms > a_ms ? 1 : -1;
    LateRankDiff late{a[0].ranks[rank].rank, a_ms, b_ms,
                      CauseIn(rows.PartsOf(rank), sign, least_ms)};
    // Late on both sides, and nothing of its own differs: that may be chance.
    if (a_ms > 0 && b_ms > 0 && late.cause.name.empty()) continue;
    ranks.push_back(std::move(late));
  }
  std::stable_sort(ranks.begin(), ranks.end(), [](const LateRankDiff& x, const LateRankDiff& y) {
    return std::abs(x.b_late_ms - x.a_late_ms) > std::abs(y.b_late_ms - y.a_late_ms);
  });
  return ranks;
}

}  // namespace trainprof
