// Two sides of runs beside each other: what takes longer in a step, by how much, and whether that can
// be told from noise. Pure: of analysed jobs, which a file may hold as digests.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job/fingerprint.h"
#include "analysis/job/job.h"
#include "analysis/job/resample.h"

namespace trainprof {

// What a run may be off by because it is another run, as a share of the step, where only one was
// recorded. Of kernels: of their own time.
inline constexpr double kRunToRunShare = 0.01;
// More where the cores of its host were busy (the fact "cpu_busy"): runs differ more there.
inline constexpr double kRunToRunOnBusyHost = 3;
inline constexpr double kBusyHostPercent = 90;

// A part of the step on both sides, in ms/step.
struct DiffRow {
  std::string name;   // "idle_input_wait", a kernel's whole name, a rank's number
  std::string title;  // for people: "idle: input wait"
  double a_ms = 0;
  double b_ms = 0;
  std::optional<Bounds> bounds;  // of the difference, with 90 %; nothing where that is not known
  double a_count = 0;            // a step, of operations; else 0
  double b_count = 0;

  double Difference() const { return b_ms - a_ms; }
  // Told from noise.
  bool IsClear() const { return bounds && (bounds->low > 0 || bounds->high < 0); }
  bool operator==(const DiffRow&) const = default;
};

struct DiffTable {
  enum class By : uint8_t { kClass, kPhase, kOperation, kRank };
  By by = By::kClass;
  // Largest difference first, whatever its sign. But for kRank they sum to `whole`, on each side.
  std::vector<DiffRow> rows;
  // The step of kClass and kRank; the host's of kPhase; a device's busy time of kOperation, whose
  // rows have one for what ran at the same time, below zero.
  DiffRow whole;

  bool operator==(const DiffTable&) const = default;
};
std::string_view Name(DiffTable::By by);  // "class", "phase", "operation", "rank"

enum class FindingState : uint8_t {
  kNew,         // in most of B's runs and in none of A's
  kFixed,       // in most of A's runs and in none of B's, where its rule was checked
  kNotChecked,  // in A, and B's rule was skipped: may be there
  kUnchanged,   // in runs of both
  kSporadic,    // in half of one side's runs or fewer, and in none of the other's
};
std::string_view Name(FindingState state);  // "new", "fixed", "not_checked", ...

// A rule at a place of the source. A finding with several places is several of these, which share
// its state, runs and times. Findings of the two sides that share a place are one.
struct FindingDiff {
  FindingState state = FindingState::kUnchanged;
  std::string fingerprint;  // FingerprintOf
  std::string rule;
  std::string code;
  Severity severity = Severity::kNote;
  Site where;          // as the newest run has it
  std::string title;   // likewise
  int64_t a_runs = 0;  // that have it
  int64_t b_runs = 0;
  // What the whole finding costs a step, mean of the runs that have it (the worst rank's).
  std::optional<double> a_cost_ms;
  std::optional<double> b_cost_ms;
  // Why a side says nothing; or that a finding of both sides is at this place in one alone; else "".
  std::string note;

  bool operator==(const FindingDiff&) const = default;
};

// A rank that others wait for by more, or less, than before.
struct LateRankDiff {
  int64_t rank = 0;
  // How much later than the rank that waits most it comes in a step, mean of the runs in which it is
  // late; 0 where it is not in most of the side's.
  double a_late_ms = 0;
  double b_late_ms = 0;
  // What it does longer, or less long, itself: the part of its own step that differs most that way;
  // of communication and waits for ranks nothing. No name where nothing does.
  DiffRow cause;

  bool operator==(const LateRankDiff&) const = default;
};

struct DiffRun {
  std::string path;
  std::string kind;
  size_t ranks = 0;
  size_t steps = 0;  // of the rank with the fewest: those that are compared
  double step_ms = 0;
};

// Why runs cannot be compared, or only with care.
struct DiffDoubt {
  std::string id;    // snake_case, stable
  std::string text;  // one line for people, without a full stop
  std::string a{};   // the two values, where they differ
  std::string b{};
};

enum class DiffResult : uint8_t {
  kSlower,  // B's step, told from noise
  kFaster,
  kNoDifference,  // that could be told from noise
  kEqual,         // not a figure differs: the same run twice
  kUnknown,       // too few steps or runs to tell
  kRefused,
};
std::string_view Name(DiffResult result);  // "slower", "no_difference", ...

struct Diff {
  DiffResult result = DiffResult::kRefused;
  std::vector<DiffRun> a;
  std::vector<DiffRun> b;
  std::vector<DiffDoubt> refusals;  // compared all the same where that was asked for
  std::vector<DiffDoubt> losses;    // records that are missing: the times of a side are in doubt
  std::vector<DiffDoubt> cautions;
  // The rest is empty where the comparison is refused.
  bool on_devices = false;  // the step is the devices'; else the stepping thread's
  DiffRow step;
  std::vector<DiffTable> tables;
  std::vector<LateRankDiff> late_ranks;  // what changes most first
  std::vector<FindingDiff> findings;     // by state, then what costs most

  // Whether what it says stands: neither refused, nor unknown, nor of a damaged run.
  bool IsConclusive() const;
};

// `a`, `b`: at least one run each. Where environments differ nothing is compared, unless `anyway`;
// without steps nothing ever is. Can be cancelled. O(rows * resamples * blocks).
Diff DiffOf(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b, bool anyway);

// How times of steps are written that take about so long: with as many digits as are of use.
struct StepUnit {
  double factor = 1;  // from ms
  std::string_view name = "ms";
  int decimals = 1;

  static StepUnit Of(double ms);
  std::string Plain(double ms, int more_decimals = 0) const;   // "41.0"
  std::string Signed(double ms, int more_decimals = 0) const;  // "+2.9"
};

// "B is 3.2 ms/step slower than A (41.0 -> 44.2 ms, +7.8 %, 90 % interval +2.9 to +3.5): input wait
// +2.9, compute +0.3"
std::string DiffVerdict(const Diff& diff);

}  // namespace trainprof
