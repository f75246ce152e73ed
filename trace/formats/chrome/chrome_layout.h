// What all rows of a Chrome file have in common, fixed before the first of them is written: several threads write
// rows of one file (chrome_row_writer.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/formats/chrome/chrome_lanes.h"
#include "trace/formats/chrome/rank_namespace.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Times count from a whole microsecond, so that they have the same digits below it as in the
// source's own clock: readers that round to microseconds (HTA) then round as they would there.
constexpr int64_t WholeMicroseconds(int64_t base_ns) { return base_ns / 1000 * 1000; }

// Rows that follow one another in the file.
struct ChromePiece {
  enum class Kind : uint8_t { kTable, kLaunchArrows, kOthers };
  Kind kind = Kind::kTable;
  Table table{};  // of kTable
  uint32_t first = 0;
  uint32_t last = 0;           // arrows have the rows of device_ops
  uint32_t arrows_before = 0;  // in the file
};

class ChromeLayout {
 public:
  // `rank` may be null: the file is this trace's alone. Both outlive the layout.
  ChromeLayout(const Trace& trace, RankNamespace* rank);

  const Trace& trace() const { return trace_; }
  const ChromeLanes& lanes() const { return lanes_; }
  RankNamespace* rank() const { return rank_; }
  // Or of another importer: words and arguments are made by the writer.
  bool is_recording() const { return is_recording_; }

  // All pieces, in the order of the file. Each row of the trace is in one.
  std::vector<ChromePiece> Pieces() const;

  // As the file says it.
  ChromeLanes::Place PlaceOf(TrackId track) const;

  // All later rows are so much later.
  void Shift(int64_t by_ns) { shift_ns_ += by_ns; }
  // In unsigned numbers: times of hostile files are near the end of the range.
  int64_t Shifted(int64_t ns) const {
    return static_cast<int64_t>(static_cast<uint64_t>(ns) + static_cast<uint64_t>(shift_ns_));
  }

  // HTA and TensorBoard know steps by the name ProfilerStep#N: the range's own counter, or its
  // number on the track. Empty for what is no step, or is called so.
  std::string StepName(uint32_t range) const;
  // Where the range is opened, on each of the first ranges of its name; kNoStack elsewhere.
  StackId OpeningOf(uint32_t range) const;

 private:
  bool IsRenamedStep(uint32_t range) const;
  void NumberSteps();
  void PlaceOpenings();

  const Trace& trace_;
  RankNamespace* const rank_;
  const bool is_recording_;
  ChromeLanes lanes_;
  int64_t shift_ns_;
  std::vector<std::pair<uint32_t, int64_t>> step_number_;  // by range, rising
  std::vector<std::pair<uint32_t, StackId>> opening_;      // by range, rising
};

}  // namespace trainprof
