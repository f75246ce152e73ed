// What a verdict does not cover: rules that could not be checked, classes of the account that no
// rule explains, and what makes the whole inconclusive. The gate, the end card and all reports take
// it from here, so that none of them says "no findings" of what nobody looked at.
//
// Two kinds of doubt make a verdict inconclusive. Evidence is missing: every quality item of
// severity kDataLoss counts, whatever its kind, so that a new kind need not be listed here. Or
// there was nothing to judge: no rule could be checked, the recording's window never opened, the
// program died before a step, a rank is not there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/job.h"
#include "analysis/rule.h"

namespace trainprof {

struct Doubt {
  std::string_view id;               // snake_case, stable: programs match on it
  std::string text;                  // one line for people, without a full stop
  std::vector<int64_t> ranks;        // whom it concerns, in order; empty: the job
  std::vector<QualityItem> quality;  // the counts behind it
  // It makes findings of its ranks doubtful, too: their times are wrong, or the device's side is
  // absent as a whole, so that a host that waits says nothing. What else is lost can only hide.
  bool undermines = false;
};

// Why the job's verdict is not conclusive, the gravest first; empty where it is.
std::vector<Doubt> DoubtsOf(const JobAnalysis& job);

// What the gate says. An error stands on the evidence that is there: what else was lost cannot undo
// it, so that it comes before every doubt but those that undermine it.
enum class Conclusion { kPassed, kFailed, kInconclusive };
std::string_view Name(Conclusion conclusion);  // "pass", "fail", "inconclusive"
int64_t ErrorsIn(const JobAnalysis& job);      // findings of severity error that are not undermined
Conclusion ConclusionOf(const JobAnalysis& job);

// Rules that were skipped for one reason in the same ranks.
struct NotChecked {
  std::vector<std::string> rules;
  std::string reason;
  std::vector<int64_t> ranks;  // in order
};
std::vector<NotChecked> RulesNotChecked(const JobAnalysis& job);

// A visible share of lost time that no checked rule explains.
struct UncoveredClass {
  std::string_view name;   // "idle_launch_bound"
  std::string_view title;  // "launch-bound"
  double share = 0;        // of the window
  double ms_per_step = 0;
  std::vector<std::string> in_part;  // checked rules that look for some of its causes
};
// Below this share of the window a class is not mentioned.
inline constexpr double kVisibleShare = kLeastShare;
// Largest first. Of the training device where they are most together; of the stepping thread where
// there is no device.
std::vector<UncoveredClass> UncoveredClasses(const RankAnalysis& rank);
// Why no rule that explains the class was checked, in the words of the first that was not; empty where one was, or
// none explains it.
std::string_view WhyNotJudged(const RankAnalysis& rank, std::string_view name);
double TotalShare(const std::vector<UncoveredClass>& classes);

// Idle or exposed time of a device that is lost; where its work may only be missing from the trace,
// it is nobody's loss.
bool IsLoss(const AccountLine& line);

}  // namespace trainprof
