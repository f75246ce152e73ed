// The tables of a comparison: each quantity as a value a step, of which the mean and the interval come.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "analysis/job/diff.h"

namespace trainprof {

// Mean over ranks of their mean steps: of devices, or of the stepping thread. 0 without steps.
double MeanStepMs(const JobAnalysis& job, bool on_devices);

// Whether the cores of a rank's host were busy throughout: runs differ more there.
bool HostWasBusy(const JobAnalysis& job);

// What findings became of each other.
std::vector<FindingDiff> DiffFindings(std::span<const JobAnalysis> a,
                                      std::span<const JobAnalysis> b);

class DiffRows;

// Which ranks became late, or no longer are. Empty where ranks are not the same on both sides.
std::vector<LateRankDiff> LateRanks(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b,
                                    const DiffRows& rows);

// Every rank of both sides has steps, and, for `on_devices`, steps of a device that trains.
class DiffRows {
 public:
  DiffRows(std::span<const JobAnalysis> a, std::span<const JobAnalysis> b, bool on_devices);

  DiffRow Step() const;
  std::vector<DiffTable> Tables() const;
  // All runs of both sides have the same ranks, and several.
  bool HasRanks() const;
  // What the step of one rank (an index) consists of, where HasRanks(): of devices, or of the thread.
  std::vector<DiffRow> PartsOf(size_t rank) const;

 private:
  // Of each run, rank and step, in ns.
  using Values = std::vector<RunValues>;
  struct Sides {
    Values a;
    Values b;
  };
  template <class PerStep>
  Sides Collect(const PerStep& per_step) const;
  enum class Wander { kOfStep, kOfOwn };
  DiffRow Row(std::string name, std::string title, const Sides& sides,
              Wander wander = Wander::kOfStep) const;

  DiffTable ByClass() const { return {DiffTable::By::kClass, Classes(nullptr), Step()}; }
  DiffTable ByPhase() const;
  DiffTable ByOperation() const;
  DiffTable ByRank() const;
  // Of that rank alone, or where it is null, of all.
  std::vector<DiffRow> Classes(const size_t* rank) const;
  std::vector<DiffRow> Phases(const size_t* rank) const;
  static Sides Of(const size_t* rank, Sides sides);

  std::span<const JobAnalysis> a_;
  std::span<const JobAnalysis> b_;
  bool on_devices_;
  Sides step_;  // of devices, or of the host
};

}  // namespace trainprof
