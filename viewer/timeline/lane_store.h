// The lanes and series of lines, made when they are first looked at and dropped when others need
// the memory.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "viewer/timeline/lines.h"

namespace trainprof {

class LaneStore {
 public:
  // Keeps a reference.
  explicit LaneStore(const Lines& lines) : lines_(lines), categorizers_(lines.ranks().size()) {}
  // For lines that were made from those of `before`: takes over what shows the same. O(lanes made).
  LaneStore(const Lines& lines, LaneStore&& before);

  // By depth; empty for a series. Valid until Trim. O(1) when it is there, else O(events).
  const std::vector<Lane>& LanesOf(uint32_t line);
  const Series& SeriesOf(uint32_t line);
  // Whether LanesOf or SeriesOf would be quick: a frame may leave the others for the next one.
  bool Has(uint32_t line) const { return made_.contains(line); }

  // Drops what was not asked for since the last Trim, longest ago first, until no more than
  // `most_bytes` are left or only what was.
  void Trim(size_t most_bytes);
  size_t size_bytes() const { return size_bytes_; }

  struct Place {
    uint32_t line = kNoLine;
    uint32_t lane = 0;
    size_t event = 0;
  };
  // Where an event is drawn; line is kNoLine when nowhere. Makes its line's lanes. O(lanes log n).
  Place PlaceOf(const EventRef& event);
  EventRef RefOf(uint32_t line, uint32_t lane, size_t event);

 private:
  struct Made {
    std::vector<Lane> lanes;
    Series series;
    size_t size_bytes = 0;
    uint64_t used = 0;
  };
  Made& Make(uint32_t line);
  void MakeLanes(const Line& line, Made& made);

  const Lines& lines_;
  std::vector<std::unique_ptr<Categorizer>> categorizers_;  // by rank
  std::unordered_map<uint32_t, Made> made_;
  size_t size_bytes_ = 0;
  uint64_t turn_ = 0;
};

}  // namespace trainprof
