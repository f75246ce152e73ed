// Lanes for tests: events drawn at random, with the awkward ones that real files hold.
#pragma once

#include "tests/support/random_trace.h"
#include "viewer/timeline/lane.h"

namespace trainprof {

struct RandomLaneOptions {
  size_t events = 100;
  int64_t begin = 0;
  int64_t longest = 40;  // most events; one in 40 is up to 20 times as long
  int64_t widest_gap = 30;
  int categories = 4;
};

inline Lane DrawLane(Random& random, const RandomLaneOptions& options) {
  Lane lane;
  int64_t at = options.begin;
  for (size_t i = 0; i < options.events; ++i) {
    if (random.Chance(60)) at += random.Between(0, options.widest_gap);
    int64_t length = random.Chance(10) ? 0 : random.Between(0, options.longest);
    if (random.Chance(2)) length = random.Between(0, options.longest * 20);
    const auto category = static_cast<Category>(random.Between(0, options.categories - 1));
    lane.Add({at}, {at + length}, category, Table::kRanges, Row{static_cast<uint32_t>(i)});
    at += length;
  }
  lane.Finish();
  return lane;
}

}  // namespace trainprof
