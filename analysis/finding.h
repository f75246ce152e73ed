// A finding: one thing to change, what it costs, what changing it would give, and the evidence.
// Self-contained: it owns its texts and outlives the trace.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <variant>
#include <vector>

#include "analysis/graph/change.h"
#include "analysis/host/call_sites.h"
#include "trace/tables/trace.h"

namespace trainprof {

enum class Severity : uint8_t { kNote, kWarning, kError };
std::string_view Name(Severity severity);  // "note", "warning", "error"

// A row of the rank that shows the finding: what a viewer leads to.
struct Evidence {
  std::string what;  // "cudaMemcpyAsync blocked for 4.7 ms"
  Interval when;
  Table table = Table::kRanges;
  Row row = kNoRow;             // kNoRow: a moment of no row
  DeviceId device = kNoDevice;  // of Table::kIdle and kBusy, whose rows are counted by device

  bool operator==(const Evidence&) const = default;
};

// How a gain is spread over the steps: one that is lost in every step is another cause than one that is
// lost in a few.
struct GainSpread {
  int64_t steps = 0;  // how many were replayed; 0: not known by step
  double median_ms = 0;
  double p90_ms = 0;  // nine in ten steps gain no more
  // The steps that hold most of it, where they are few, and what each of them gains on average.
  int64_t rare_steps = 0;  // 0: it is spread over many
  double rare_ms = 0;
  int64_t every = 0;  // they stand that many steps apart; 0: at no fixed distance

  bool operator==(const GainSpread&) const = default;
};

// How far low and high lie apart, by what makes them, in ms a step (analysis/gain.h). Each by itself: they do not
// simply add up.
struct GainSources {
  double answers_ms = 0;  // from the least to the most that the world may answer
  // To either side:
  double steps_ms = 0;
  double replay_ms = 0;
  double runs_ms = 0;
  double recording_ms = 0;  // what it took of the steps may be half, or half as much again
  // On top of high: operations whose launch is missing.
  double launches_ms = 0;

  bool operator==(const GainSources&) const = default;
};

struct Gain {
  // It lies between them with nine in ten: how the world may answer, how far steps differ, and how well
  // the recording is understood (analysis/gain.h).
  double low_ms_per_step = 0;
  double high_ms_per_step = 0;
  double expected_ms_per_step = 0;
  // Of it, what is still to gain when the findings before this one are fixed: their gains do not add up.
  double further_ms_per_step = 0;
  GainSpread spread{};  // of what is expected
  GainSources sources{};

  bool operator==(const Gain&) const = default;
};

struct Finding {
  std::string rule;  // slug; set by the engine
  std::string code;  // TPnnn; set by the engine
  Severity severity = Severity::kNote;
  std::string title;        // one line, with the figure
  std::vector<Site> where;  // most frequent first
  int64_t count = 0;        // instances in the window
  // Over the window of devices; per step it is cost / steps. What stands on other steps is scaled to them.
  Duration cost;
  Gain gain;                                    // set by the engine
  double confidence = 1;                        // 0..1; a rule may lower it
  std::vector<std::string> confidence_reasons;  // why it is not higher
  std::vector<Evidence> evidence;               // the worst few
  std::string advice;
  std::string fix;     // code, where there is one to show
  std::string verify;  // how to see that it helped

  bool operator==(const Finding&) const = default;
};

// Something that makes all findings of a rank less sure.
struct Weakness {
  double factor = 1;   // what their confidence is multiplied by
  std::string reason;  // for Finding::confidence_reasons

  bool operator==(const Weakness&) const = default;
};

// A finding shows as much evidence as a reader looks at.
inline constexpr size_t kMostEvidence = 3;

// Takes `item` among the worst few, the worst first, where it is one of them; of equals, those that came first.
// `worse(a, b)`: whether a is worse than b.
template <class T, class Worse>
void AddWorst(std::vector<T>& worst, T item, Worse worse) {
  if (worst.size() == kMostEvidence && !worse(item, worst.back())) return;
  if (worst.size() == kMostEvidence) worst.pop_back();
  const auto behind =
      std::find_if(worst.begin(), worst.end(), [&](const T& other) { return worse(item, other); });
  worst.insert(behind, std::move(item));
}

// Leaves the worst few of `items`. O(n).
template <class T, class Worse>
void KeepWorst(std::vector<T>& items, Worse worse) {
  std::vector<T> worst;
  for (T& item : items) AddWorst(worst, std::move(item), worse);
  items = std::move(worst);
}

// The rule could not be checked. "Not checked" never reads as "healthy".
struct Skipped {
  std::string reason;
};

// A finding and what fixing it changes.
struct Diagnosis {
  Finding finding;
  Change change;
};

using RuleOutcome = std::variant<std::vector<Diagnosis>, Skipped>;

}  // namespace trainprof
