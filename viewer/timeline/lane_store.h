// The lanes and series of lines, made when they are first looked at and dropped when others need
// the memory. A thread of its own makes what would hold up a frame.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "viewer/timeline/background.h"
#include "viewer/timeline/line_contents.h"

namespace trainprof {

class LaneStore {
 public:
  // What is made within a frame, all together: half a millisecond.
  static constexpr size_t kMostEffortAtOnce = 10'000;

  // Shared with the thread.
  explicit LaneStore(std::shared_ptr<const Lines> lines);
  // Keeps a reference.
  explicit LaneStore(const Lines& lines);
  // For lines that were made from those of `before`: takes over what shows the same, and what is
  // being made. O(lanes made).
  LaneStore(std::shared_ptr<const Lines> lines, LaneStore&& before);
  LaneStore(const Lines& lines, LaneStore&& before);

  // For a frame, which asks again in the next one: whether LanesOf or SeriesOf of the line are
  // there now. Small ones are made at once, the others on the thread in the order in which they
  // were asked for; what was not asked for since the last Trim is left.
  bool Ask(uint32_t line, Form form = Form::kLanes);
  // Something that was asked for is not there: a later frame shows more.
  bool busy() const { return !asked_.empty(); }
  bool Has(uint32_t line, Form form = Form::kLanes) const {
    return made_.contains(WhatOf(line, form));
  }

  // By depth; empty for a series. Valid until Trim. O(1) when Has, else made now: O(events).
  const std::vector<Lane>& LanesOf(uint32_t line);
  // The one lane of the other forms; of kLanes the one at that depth.
  const Lane& LaneOf(uint32_t line, Form form, uint32_t depth = 0);
  const Series& SeriesOf(uint32_t line);

  // Once a frame: drops what was not asked for since the last Trim, longest ago first, until no
  // more than `most_bytes` are left or only what was.
  void Trim(size_t most_bytes);
  size_t size_bytes() const { return size_bytes_; }

  struct Place {
    uint32_t line = kNoLine;
    uint32_t lane = 0;
    size_t event = 0;
  };
  // Where an event is drawn; line is kNoLine when nowhere. Its line is made now unless it is there.
  // O(lanes log n).
  Place PlaceOf(const EventRef& event);
  EventRef RefOf(uint32_t line, uint32_t lane, size_t event);

 private:
  struct What {
    uint32_t line = 0;
    Form form{};

    auto operator<=>(const What&) const = default;
  };
  struct HashOfWhat {
    size_t operator()(const What& what) const {
      return what.line * size_t{4} + static_cast<size_t>(what.form);
    }
  };
  struct Made {
    LineContents contents;
    uint64_t used = 0;
  };
  struct Asked {
    What what;
    uint64_t turn = 0;
  };

  What WhatOf(uint32_t line, Form form) const {
    return {line, lines_->lines()[line].lanes > 1 ? form : Form::kLanes};
  }
  LineContents& Make(const What& what);
  LineContents& Keep(const What& what, LineContents contents);
  void Remember(const What& what);
  void TakeOver();
  void MakeNext();
  void ForgetWhatNobodyAskedFor();

  std::shared_ptr<const Lines> lines_;
  std::unordered_map<What, Made, HashOfWhat> made_;
  size_t size_bytes_ = 0;
  uint64_t turn_ = 0;
  size_t effort_left_ = kMostEffortAtOnce;  // until the next Trim

  std::vector<Asked> asked_;  // that are not there
  // What the thread makes of them, and of which edition of the lines.
  std::vector<What> being_made_;
  std::shared_ptr<const Lines> made_of_;
  BackgroundJob<std::vector<LineContents>> job_;  // the first to go: its thread uses the rest
};

}  // namespace trainprof
