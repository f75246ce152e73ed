#include "viewer/timeline/pyramid.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace trainprof {
namespace {

constexpr int kMostShift = 62;

// The last nanosecond that an event touches; one of no length touches its begin.
int64_t LastInstant(TraceTime begin, TraceTime end) { return std::max(begin.ns, end.ns - 1); }

uint64_t BinCount(int64_t first_ns, int64_t last_ns, int shift) {
  return static_cast<uint64_t>((last_ns >> shift) - (first_ns >> shift)) + 1;
}

}  // namespace

Column MakeColumn(const CategoryTotals& totals, Category first, Duration length) {
  Duration sum;
  size_t most = 0;
  for (size_t c = 0; c < kCategories; ++c) {
    sum += totals[c];
    if (totals[c] > totals[most]) most = c;
  }
  if (sum.ns == 0) return {1, first};
  const double share = static_cast<double>(sum.ns) / static_cast<double>(length.ns);
  const long busy = std::lround(255 * share);
  return {static_cast<uint8_t>(std::clamp(busy, 1L, 255L)), static_cast<Category>(most)};
}

// Events come in time order, so that one bin a level is open at a time: a closed one is added to
// the bin above it.
class PyramidBuilder {
 public:
  PyramidBuilder(int64_t first_ns, int64_t last_ns, size_t most_bins) {
    int shift = 0;
    while (BinCount(first_ns, last_ns, shift) > most_bins) ++shift;
    pyramid_.finest_shift_ = shift;
    size_t columns = 0;
    for (; shift <= kMostShift; ++shift) {
      const size_t bins = BinCount(first_ns, last_ns, shift);
      pyramid_.levels_.push_back({first_ns >> shift, columns, bins});
      columns += bins;
      if (bins <= 2) break;
    }
    pyramid_.columns_.resize(columns);
    open_.resize(pyramid_.levels_.size());
  }

  void Add(TraceTime begin, TraceTime end, Category category) {
    const int shift = pyramid_.finest_shift_;
    int64_t at = begin.ns;
    do {
      const int64_t bin = at >> shift;
      const int64_t last = std::min(end.ns - 1, LastOf(bin, shift));
      if (open_[0].any && open_[0].bin != bin) Close(0);
      Put(open_[0], bin, category);
      open_[0].total[static_cast<size_t>(category)].ns += std::max<int64_t>(last + 1 - at, 0);
      at = last + 1;
    } while (at < end.ns);
  }

  Pyramid Finish() && {
    for (size_t level = 0; level < open_.size(); ++level) Close(level);
    return std::move(pyramid_);
  }

 private:
  struct OpenBin {
    bool any = false;
    Category first{};
    uint16_t used = 0;  // bit c: category c occurs
    int64_t bin = 0;
    CategoryTotals total{};
  };

  static int64_t LastOf(int64_t bin, int shift) {
    return static_cast<int64_t>(static_cast<uint64_t>(bin + 1) << shift) - 1;
  }
  static void Put(OpenBin& open, int64_t bin, Category category) {
    if (!open.any) {
      open.any = true;
      open.bin = bin;
      open.first = category;
    }
    open.used = static_cast<uint16_t>(open.used | 1u << static_cast<unsigned>(category));
  }

  void Close(size_t level) {
    OpenBin& open = open_[level];
    if (!open.any) return;
    const Pyramid::Level& place = pyramid_.levels_[level];
    const int shift = pyramid_.finest_shift_ + static_cast<int>(level);
    pyramid_.columns_[place.offset + static_cast<size_t>(open.bin - place.first)] =
        MakeColumn(open.total, open.first, Duration{int64_t{1} << shift});
    if (level + 1 < open_.size()) {
      OpenBin& above = open_[level + 1];
      const int64_t bin = open.bin >> 1;
      if (above.any && above.bin != bin) Close(level + 1);
      Put(above, bin, open.first);
      above.used |= open.used;
      for (unsigned used = open.used; used != 0; used &= used - 1) {
        const auto c = static_cast<size_t>(std::countr_zero(used));
        above.total[c] += open.total[c];
      }
    }
    for (unsigned used = open.used; used != 0; used &= used - 1) {
      open.total[static_cast<size_t>(std::countr_zero(used))] = {};
    }
    open.any = false;
    open.used = 0;
  }

  Pyramid pyramid_;
  std::vector<OpenBin> open_;
};

Pyramid Pyramid::Build(std::span<const TraceTime> begin, std::span<const TraceTime> end,
                       std::span<const Category> category) {
  if (begin.size() < kLeastEvents) return {};
  const size_t bins = std::min(kMostBins, begin.size() / kEventsPerBin);
  PyramidBuilder builder(begin.front().ns, LastInstant(begin.back(), end.back()), bins);
  for (size_t i = 0; i < begin.size(); ++i) builder.Add(begin[i], end[i], category[i]);
  return std::move(builder).Finish();
}

std::span<const Column> Pyramid::Bins(int shift) const {
  const Level& level = levels_[shift - finest_shift_];
  return std::span(columns_).subspan(level.offset, level.size);
}

}  // namespace trainprof
