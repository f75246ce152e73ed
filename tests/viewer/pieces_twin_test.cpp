// VisitPieces beside a twin that looks at every nanosecond of the view.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/viewer/random_lane.h"
#include "viewer/timeline/pieces.h"

namespace trainprof {
namespace {

// What a nanosecond belongs to: an event that is shown by itself, or a cell of the grid between two
// of them.
struct Owner {
  size_t event = kFolded;
  int64_t cell = 0;
  size_t stretch = 0;
  auto operator<=>(const Owner&) const = default;
};

struct Cell {
  int64_t first = INT64_MAX;
  int64_t length = 0;
  bool any = false;
  Category first_category{};
  int64_t ns[kCategories] = {};
};

// Per nanosecond: no searching, no sums, no pyramid.
std::vector<Piece> PiecesTwin(const Lane& lane, const Scale& scale) {
  std::map<std::pair<int64_t, Owner>, Cell> cells;  // by first ns
  size_t i = 0;
  size_t stretch = 0;
  Owner before;
  Cell* cell = nullptr;
  for (int64_t t = scale.view.begin.ns; t < scale.view.end.ns; ++t) {
    while (i < lane.size() && lane.interval(i).end.ns <= t && lane.interval(i).begin.ns < t) ++i;
    size_t inside = kFolded;
    std::vector<size_t> touching;
    for (size_t e = i; e < lane.size() && lane.interval(e).begin.ns <= t; ++e) {
      if (lane.interval(e).Contains({t})) inside = e;
      if (lane.interval(e).Contains({t}) || lane.interval(e).begin.ns == t) touching.push_back(e);
    }
    Owner owner;
    if (inside != kFolded && lane.interval(inside).Length() >= scale.event_length) {
      owner.event = inside;
      ++stretch;
    } else {
      owner.cell = t >> scale.shift;
      owner.stretch = stretch;
    }
    if (cell == nullptr || owner != before) cell = &cells[{t, owner}];
    before = owner;
    cell->first = std::min(cell->first, t);
    ++cell->length;
    if (!touching.empty() && !cell->any) {
      cell->any = true;
      cell->first_category = lane.category(touching.front());
    }
    if (inside != kFolded) ++cell->ns[static_cast<size_t>(lane.category(inside))];
  }
  std::vector<Piece> pieces;
  for (const auto& [key, c] : cells) {
    const Interval time{{c.first}, {c.first + c.length}};
    if (key.second.event != kFolded) {
      pieces.push_back({time, key.second.event, {255, lane.category(key.second.event)}});
    } else if (c.any) {
      int64_t sum = 0;
      size_t most = 0;
      for (size_t k = 0; k < kCategories; ++k) {
        sum += c.ns[k];
        if (c.ns[k] > c.ns[most]) most = k;
      }
      const double share = 255 * (static_cast<double>(sum) / static_cast<double>(c.length));
      const auto busy = static_cast<uint8_t>(std::max(1.0, std::round(share)));
      pieces.push_back(
          {time, kFolded, {busy, sum == 0 ? c.first_category : static_cast<Category>(most)}});
    }
  }
  return pieces;
}

std::string ToText(const std::vector<Piece>& pieces) {
  std::string text;
  for (const Piece& piece : pieces) {
    text +=
        "[" + std::to_string(piece.time.begin.ns) + ", " + std::to_string(piece.time.end.ns) + ") ";
    text += piece.event == kFolded ? "folded" : "event " + std::to_string(piece.event);
    text += " busy " + std::to_string(piece.column.busy) + " category " +
            std::to_string(static_cast<int>(piece.column.category)) + "\n";
  }
  return text;
}

std::vector<Piece> PiecesOf(const Lane& lane, const Scale& scale) {
  std::vector<Piece> pieces;
  VisitPieces(lane, scale, [&](const Piece& piece) { pieces.push_back(piece); });
  return pieces;
}

void CompareViews(const Lane& lane, Random& random, int views, const char* what) {
  const int64_t first = lane.interval(0).begin.ns;
  const int64_t last = lane.interval(lane.size() - 1).end.ns;
  for (int v = 0; v < views; ++v) {
    const int64_t span = std::max<int64_t>(last - first, 1);
    const int64_t begin = first + random.Between(-span / 4 - 2, span + 2);
    const int64_t length = random.Between(1, random.Chance(30) ? 2 * span : span / 8 + 1);
    const auto width = static_cast<int32_t>(random.Between(1, 400));
    const Scale scale = Scale::Of({{begin}, {begin + length}}, width,
                                  static_cast<int32_t>(1 << random.Between(0, 4)));
    ASSERT_EQ(ToText(PiecesOf(lane, scale)), ToText(PiecesTwin(lane, scale)))
        << what << ": view " << begin << " + " << length << ", " << width << " px, event_px "
        << scale.event_px;
  }
}

TEST(PiecesTwin, AgreesOnShortLanes) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    RandomLaneOptions options{.events = static_cast<size_t>(random.Between(1, 60)),
                              .begin = random.Between(-500, 500)};
    if (random.Chance(30)) options.longest = 1;
    if (random.Chance(30)) options.widest_gap = 0;
    const Lane lane = DrawLane(random, options);
    CompareViews(lane, random, 20, ("seed " + std::to_string(seed)).c_str());
    if (HasFatalFailure()) return;
  }
}

// Long enough for a pyramid, block sums and several levels of longest events.
TEST(PiecesTwin, AgreesOnLanesWithAPyramid) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Random random(seed);
    RandomLaneOptions options{.events = static_cast<size_t>(random.Between(256, 3000)),
                              .begin = random.Between(-20'000, 500),
                              .longest = random.Between(1, 30)};
    const Lane lane = DrawLane(random, options);
    ASSERT_GT(lane.pyramid().size_bytes(), 0u);
    CompareViews(lane, random, 25, ("seed " + std::to_string(seed)).c_str());
    if (HasFatalFailure()) return;
  }
}

TEST(PiecesTwin, HitsWhatIsDrawn) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const Lane lane = DrawLane(random, {.events = 400});
    const int64_t last = lane.interval(lane.size() - 1).end.ns;
    const int64_t begin = random.Between(0, last);
    const Scale scale = Scale::Of({{begin}, {begin + random.Between(1, last)}}, 300);
    const std::vector<Piece> pieces = PiecesTwin(lane, scale);
    for (int pixel = 0; pixel < 300; ++pixel) {
      const TraceTime t = scale.TimeAt(pixel + 0.5);
      const Hit hit = HitTest(lane, scale, pixel + 0.5);
      const auto piece = std::find_if(pieces.begin(), pieces.end(),
                                      [&](const Piece& p) { return p.time.Contains(t); });
      ASSERT_EQ(hit.Empty(), piece == pieces.end()) << "seed " << seed << " pixel " << pixel;
      if (hit.Empty()) continue;
      EXPECT_EQ(hit.time, piece->time);
      EXPECT_EQ(hit.folded, piece->event == kFolded);
      if (!hit.folded) {
        EXPECT_EQ(hit.first, piece->event);
      }
      for (size_t i = 0; i < lane.size(); ++i) {  // all those that touch the piece, no other
        const Interval e = lane.interval(i);
        const bool touches = !Intersect(e, hit.time).Empty() || hit.time.Contains(e.begin);
        const bool is_zero_beside_event = !hit.folded && i != hit.first;
        if (is_zero_beside_event) continue;
        EXPECT_EQ(touches, i >= hit.first && i < hit.last) << "event " << i;
      }
    }
  }
}

}  // namespace
}  // namespace trainprof
