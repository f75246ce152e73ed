// What each step's time went to: the bars of the step ribbon. Made once an analysis.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/tables/category.h"
#include "viewer/document/document.h"

namespace trainprof {

struct StepBars {
  struct Part {
    std::string_view title;  // as reports write it
    Category category{};
    bool idle = false;
    Duration total;  // over all steps that have parts
  };
  std::string source;           // whose time: "GPU 0", "main thread"
  std::vector<Part> parts;      // from below; none as long as nothing is known
  std::vector<Interval> spans;  // by step, by the steps' clock, on the axis of the lines
  // By step and part. Steps during which the device was not recorded in detail have none: all 0.
  std::vector<Duration> time;
  int64_t detailed = 0;          // steps that have parts
  std::vector<int64_t> numbers;  // by step
  Duration median;               // of the spans
  Duration limit;                // a bar of full height; longer ones are clipped
  bool analysed = false;         // else only how long the steps are is known

  std::span<const Duration> PartsOf(size_t step) const {
    return {time.data() + step * parts.size(), parts.size()};
  }
};

// What bars are made of.
struct StepBarsKey {
  std::weak_ptr<Document> document;
  const RankAnalysis* analysis = nullptr;
  uint32_t rank = 0;
  Duration shift;  // of the rank

  bool operator==(const StepBarsKey& other) const {
    return !document.owner_before(other.document) && !other.document.owner_before(document) &&
           analysis == other.analysis && rank == other.rank && shift == other.shift;
  }
};

// Of one rank's device that was busiest, else of the thread that steps. `analysis` null: only how
// long the steps are. O(idle segments + steps log n), without a device O(events of the thread).
StepBars MakeStepBars(const Lines& lines, uint32_t rank, const Steps& steps,
                      const RankAnalysis* analysis);

// By column, where there are more steps than columns: the longest step of each, so that none hides.
// At most `columns`, in order. O(steps).
std::vector<uint32_t> WorstOfColumns(std::span<const Interval> spans, size_t columns);

}  // namespace trainprof
