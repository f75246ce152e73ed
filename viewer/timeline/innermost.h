// What ran on a line at each moment: of nested events the innermost one. Its time counts once,
// where the sum over all depths counts what lies within an event again and again.
#pragma once

#include <vector>

#include "viewer/timeline/lane.h"

namespace trainprof {

class InnermostMaker {
 public:
  // A strip stands for the whole line. What an outermost event with others inside did by itself is
  // left out: steps, and frames that span everything, would hide what is not accounted for. What is
  // inside of a wait for input, or of saving and logging, belongs to it: the loader's own ranges do
  // not hide that the loop waited.
  explicit InnermostMaker(bool is_strip) : is_strip_(is_strip) {}

  // In the order of begins, the longer first; `depth` is DepthPlacer's. O(1), amortised.
  void Add(const Interval& event, uint32_t depth, Category category, Table table, Row row);
  // After the last Add. O(n).
  Lane Finish();

 private:
  struct Open {
    Interval event;
    Category category{};
    Table table{};
    Row row = kNoRow;
  };
  struct Stretch {
    Interval time;
    Open of;
    bool is_outermost = false;
  };

  void CloseDownTo(size_t depth);
  void RunInnermostUntil(TraceTime end);
  void Flush();

  const bool is_strip_;
  std::vector<Open> open_;   // by depth
  TraceTime at_{INT64_MIN};  // up to here all is said
  Stretch last_;             // not yet in the lane: it may go on
  Lane lane_;
};

}  // namespace trainprof
