#include "analysis/job/late_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/gain.h"
#include "analysis/rule.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

// Of the device that did least, as the verdict has it; nullptr where there is none.
const DeviceReport* DeviceOf(const RankAnalysis& rank) {
  const DeviceReport* least = nullptr;
  for (const DeviceReport& device : rank.devices) {
    if (!device.stray && (least == nullptr || device.busy < least->busy)) least = &device;
  }
  return least;
}

double Middle(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Shown {
  const std::vector<AccountLine>* account = nullptr;
  double steps = 1;
};

// Of all ranks the same side: that of devices where all have one.
std::vector<Shown> AccountsOf(std::span<const RankAnalysis> ranks, bool on_device) {
  std::vector<Shown> accounts;
  for (const RankAnalysis& rank : ranks) {
    if (on_device) {
      accounts.push_back(
          {&DeviceOf(rank)->account, static_cast<double>(rank.device_steps.divisor())});
    } else {
      accounts.push_back({&rank.host_account, static_cast<double>(rank.steps.divisor())});
    }
  }
  return accounts;
}

bool IsCause(std::string_view name) {
  return name != Name(DeviceClass::kExposedCommunication) && name != Name(HostClass::kRankWait);
}

bool IsOfCommunication(const Finding& finding) {
  for (const RegisteredRule& entry : AllRules()) {
    if (entry.slug != finding.rule || entry.rule->explains.empty()) continue;
    const auto* device = std::get_if<DeviceClass>(&entry.rule->explains.front().of);
    return device != nullptr && *device == DeviceClass::kExposedCommunication;
  }
  return false;
}

// How much later than the rank that waits most each comes, in a step; < 0: not known.
std::vector<double> LatenessMs(const JobWaits& waits, std::span<const RankAnalysis> ranks) {
  std::vector<double> late;
  for (const auto& each : LatenessOf(waits, ranks))
    late.push_back(each ? each->ToMilliseconds() : -1);
  return late;
}

// What the job gains where each rank comes earlier by `gain`.
double JobGain(std::span<const double> late, std::span<const double> gain) {
  double before = 0;
  double after = -1e300;
  for (size_t rank = 0; rank < late.size(); ++rank) {
    if (late[rank] < 0) continue;
    before = std::max(before, late[rank]);
    after = std::max(after, late[rank] - gain[rank]);
  }
  return std::max(0.0, before - after);
}

struct Promises {
  std::vector<double> low;  // by rank
  std::vector<double> high;
  std::vector<double> expected;
};

}  // namespace

LateCause CauseOf(const JobWaits& waits, std::span<const RankAnalysis> ranks) {
  LateCause cause;
  if (waits.late.empty()) return cause;
  const uint32_t late = waits.late.front();
  const double step_ms = ranks[late].PerStepMs(ranks[late].window);
  cause.brought_ms = ranks[late].PerStepMs(waits.ranks[late].brought);
  if (cause.brought_ms < kWaitWorthSaying * step_ms) cause.brought_ms = 0;
  cause.on_device = std::all_of(ranks.begin(), ranks.end(),
                                [](const RankAnalysis& rank) { return DeviceOf(rank) != nullptr; });
  const std::vector<Shown> accounts = AccountsOf(ranks, cause.on_device);
  // Beside ranks that are late for themselves, not beside those that are late with it.
  std::vector<size_t> others;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (std::find(waits.late.begin(), waits.late.end(), rank) == waits.late.end()) {
      others.push_back(rank);
    }
  }
  const auto more = [&](const auto& value) {
    std::vector<double> values;
    for (const size_t rank : others) values.push_back(value(rank));
    return values.empty() ? 0.0 : value(late) - Middle(std::move(values));
  };
  cause.more_ms = kWaitWorthSaying * step_ms;
  for (size_t line = 0; line < accounts[late].account->size(); ++line) {
    const AccountLine& own = (*accounts[late].account)[line];
    if (!IsCause(own.name)) continue;
    const double by = more([&](size_t rank) {
      const Shown& shown = accounts[rank];
      if (line >= shown.account->size()) return 0.0;
      return (*shown.account)[line].total.ToMilliseconds() / shown.steps;
    });
    if (by < cause.more_ms) continue;
    cause.name = own.name;
    cause.title = own.title;
    cause.more_ms = by;
  }
  if (cause.name.empty()) cause.more_ms = 0;
  if (cause.name == Name(DeviceClass::kCompute)) {
    cause.kernels_more = more([&](size_t rank) {
      return static_cast<double>(ranks[rank].kernels) /
             static_cast<double>(ranks[rank].steps.divisor());
    });
  }
  return cause;
}

void FitGains(const JobWaits& waits, std::span<RankAnalysis> ranks) {
  if (!waits.Any()) return;
  const std::vector<double> late = LatenessMs(waits, ranks);
  const double latest = *std::max_element(late.begin(), late.end());
  std::map<std::string, Promises> promised;  // by the finding's code
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    for (const Finding& finding : ranks[rank].findings) {
      Promises& all = promised[finding.code];
      all.low.resize(ranks.size());
      all.high.resize(ranks.size());
      all.expected.resize(ranks.size());
      all.low[rank] += finding.gain.low_ms_per_step;
      all.high[rank] += finding.gain.high_ms_per_step;
      all.expected[rank] += finding.gain.expected_ms_per_step;
    }
  }
  for (size_t r = 0; r < ranks.size(); ++r) {
    if (late[r] < 0) continue;
    RankAnalysis& rank = ranks[r];
    const RankWaits& own = waits.ranks[r];
    const double step_ms = rank.PerStepMs(rank.window);
    const double slack_ms = latest - late[r];
    const bool is_waiting = slack_ms >= kWaitWorthSaying * step_ms;
    // Whom a missing rank waits for is not known: it may be this one where this one came last.
    const bool is_sure =
        waits.is_whole || (own.alone == 0 && rank.PerStepMs(own.lead) < kWaitWorthSaying * step_ms);
    const double waiting_ms = rank.PerStepMs(own.exposed_wait);
    for (Finding& finding : rank.findings) {
      const Gain before = finding.gain;
      std::string why;
      if (is_waiting && is_sure) {
        finding.gain = {};
        why = fmt::format(
            "this rank waits {} a step{}: what it saves by itself it waits longer",
            TimeText(slack_ms),
            own.awaited ? fmt::format(", most of it for rank {}", ranks[*own.awaited].rank) : "");
      } else if (is_waiting) {
        LowerTo({0, before.high_ms_per_step - slack_ms, before.expected_ms_per_step - slack_ms},
                finding.gain);
        why = fmt::format(
            "this rank waits {} a step for others, and not all ranks' collectives are there to "
            "see whom it keeps waiting",
            TimeText(slack_ms));
      } else {
        const Promises& all = promised[finding.code];
        LowerTo({JobGain(late, all.low), JobGain(late, all.high), JobGain(late, all.expected)},
                finding.gain);
        why = "other ranks come nearly as late: fixed wherever it was found, the job gains no more";
        if (IsOfCommunication(finding) && waiting_ms > 0) {
          const double exchange_ms = std::max(0.0, rank.DevicePerStepMs(finding.cost) - waiting_ms);
          LowerTo({exchange_ms, exchange_ms, exchange_ms}, finding.gain);
          why = fmt::format("{} a step of it are waiting for other ranks", TimeText(waiting_ms));
        }
      }
      if (finding.gain != before) finding.confidence_reasons.push_back(std::move(why));
    }
    RateGainsAgain(rank);
  }
}

std::string CauseText(const LateCause& cause) {
  std::string text;
  if (!cause.name.empty()) {
    text = fmt::format("{}{} takes {} a step longer than on the middle one of the others",
                       cause.name.starts_with("idle_") ? "GPU idle, " : "", cause.title,
                       TimeText(cause.more_ms));
    if (cause.kernels_more >= 1)
      text += fmt::format(", with {:.0f} kernels more", cause.kernels_more);
  }
  if (cause.brought_ms > 0) {
    text += fmt::format(
        "{}it came {} later than the middle rank into the first recorded step, from what was not "
        "recorded",
        text.empty() ? "" : "; ", TimeText(cause.brought_ms));
  }
  return text;
}

}  // namespace trainprof
