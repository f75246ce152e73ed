// VisitPieces from nanoseconds to years: each piece beside a sum over all events.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/viewer/random_lane.h"
#include "viewer/timeline/pieces.h"

namespace trainprof {
namespace {

// From none to half an hour, each power of two as likely as the others.
int64_t AnyLength(Random& random, int64_t most_bits) {
  const int64_t bits = random.Between(0, most_bits);
  return bits == 0 ? 0 : random.Between(int64_t{1} << (bits - 1), int64_t{1} << bits);
}

// Bursts of short events with pauses of any length, and now and then an event of any length.
Lane DrawBursts(Random& random, int bursts, int most_events) {
  Lane lane;
  int64_t at = random.Between(-1'000'000'000'000, 1'000'000'000'000);
  uint32_t row = 0;
  for (int b = 0; b < bursts; ++b) {
    const int64_t bits = random.Between(1, 14);
    for (int64_t n = random.Between(1, most_events); n > 0; --n) {
      if (random.Chance(70)) at += AnyLength(random, bits);
      const int64_t length = random.Chance(2) ? AnyLength(random, 40) : AnyLength(random, bits);
      const auto category = static_cast<Category>(random.Between(0, 15));
      lane.Add({at}, {at + length}, category, Table::kRanges, Row{row++});
      at += length;
    }
    at += AnyLength(random, 45);
  }
  lane.Finish();
  return lane;
}

Column LinearColumn(const Lane& lane, const Interval& time) {
  CategoryTotals totals{};
  int64_t sum = 0;
  size_t first = lane.size();
  for (size_t i = 0; i < lane.size(); ++i) {
    const Interval inside = Intersect(lane.interval(i), time);
    if (inside.Empty() && !time.Contains(lane.interval(i).begin)) continue;
    first = std::min(first, i);
    if (inside.Empty()) continue;
    totals[static_cast<size_t>(lane.category(i))] += inside.Length();
    sum += inside.Length().ns;
  }
  if (first == lane.size()) return {};
  const auto most = std::max_element(totals.begin(), totals.end()) - totals.begin();
  const double share = static_cast<double>(sum) / static_cast<double>(time.Length().ns);
  return {static_cast<uint8_t>(std::max(1.0, std::round(255 * share))),
          sum == 0 ? lane.category(first) : static_cast<Category>(most)};
}

void CheckView(const Lane& lane, const Scale& scale, size_t& folded) {
  std::vector<Piece> pieces;
  VisitPieces(lane, scale, [&](const Piece& piece) { pieces.push_back(piece); });
  TraceTime end = scale.view.begin;
  for (const Piece& piece : pieces) {
    ASSERT_FALSE(piece.time.Empty());
    ASSERT_LE(end, piece.time.begin);
    end = piece.time.end;
    if (piece.event == kFolded) {
      ++folded;
      ASSERT_EQ(piece.column, LinearColumn(lane, piece.time)) << piece.time.begin.ns;
    } else {
      ASSERT_EQ(piece.time, Intersect(lane.interval(piece.event), scale.view));
      ASSERT_GE(lane.interval(piece.event).Length(), scale.event_length);
    }
  }
  ASSERT_LE(end, scale.view.end);
  // All of each event is drawn, and a long one by itself.
  size_t p = 0;
  for (size_t i = 0; i < lane.size(); ++i) {
    const Interval event = Intersect(lane.interval(i), scale.view);
    if (event.Empty()) continue;
    TraceTime at = event.begin;
    while (p < pieces.size() && pieces[p].time.end <= at) ++p;
    if (lane.interval(i).Length() >= scale.event_length) {
      ASSERT_LT(p, pieces.size());
      ASSERT_EQ(pieces[p].event, i);
    }
    for (size_t q = p; at < event.end; ++q) {
      ASSERT_LT(q, pieces.size()) << "event " << i;
      ASSERT_LE(pieces[q].time.begin, at) << "event " << i;
      at = pieces[q].time.end;
    }
  }
}

TEST(PiecesScale, EachPieceIsTheSumOfItsEvents) {
  size_t folded = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const Lane lane = DrawBursts(random, 12, seed % 2 == 0 ? 150 : 15);
    const Interval all{lane.interval(0).begin, lane.interval(lane.size() - 1).end};
    for (int v = 0; v < 30; ++v) {
      const auto i = static_cast<size_t>(random.Between(0, static_cast<int64_t>(lane.size()) - 1));
      const int64_t length = v == 0 ? all.Length().ns + 2 : AnyLength(random, 48) + 1;
      const TraceTime begin{v == 0 ? all.begin.ns - 1
                                   : lane.interval(i).begin.ns - random.Between(0, length)};
      const auto width = static_cast<int32_t>(random.Between(1, 300));
      CheckView(lane,
                Scale::Of({begin, begin + Duration{length}}, width,
                          static_cast<int32_t>(1 << random.Between(0, 3))),
                folded);
      ASSERT_FALSE(HasFatalFailure())
          << "seed " << seed << " view " << begin.ns << " + " << length << ", " << width << " px";
    }
  }
}

}  // namespace
}  // namespace trainprof
