// What the job makes of who waits for whom: why the late rank is late, and what findings are worth to the job.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "analysis/job/waits.h"

namespace trainprof {

// In what the late rank differs most from the others, by the time that each class of the account takes.
struct LateCause {
  std::string_view name;   // "idle_input_wait"; "" where no class does by enough to be worth saying
  std::string_view title;  // "input wait"
  bool on_device = false;  // of the account of devices, else of the stepping thread's
  double more_ms = 0;      // per step, than the middle one of the others
  double kernels_more = 0;  // the same of its kernels, where it computes more
  double brought_ms = 0;    // per step, RankWaits::brought

  bool operator==(const LateCause&) const = default;
};

// Of waits.late.front(). Communication and waits for ranks are no causes. O(ranks).
LateCause CauseOf(const JobWaits& waits, std::span<const RankAnalysis> ranks);

// Bounds what each rank's findings promise by what that gives the job.
//
//  - On a rank that waits for others: nothing. It would wait longer.
//  - On the others, what fixing it wherever it was found gives: each rank comes earlier by what it
//    promises there, and the job is as late as its latest. So a rank that alone has it, and alone is late, gains no more than
//    its lead over the second-latest; a job whose ranks are all alike gains what each of them does.
//  - What is waiting within exposed communication is no gain of a faster exchange.
//
// Findings are put in order again, and say why they promise less. O(ranks * findings).
void FitGains(const JobWaits& waits, std::span<RankAnalysis> ranks);

// Why the late rank is late, in words: "GPU idle, launch-bound takes 1.3 ms/step longer than on the middle one of the
// others; 2.1 ms/step of it came from before the recording". "" where nothing is known.
std::string CauseText(const LateCause& cause);

}  // namespace trainprof
