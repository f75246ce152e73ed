#include "viewer/timeline/pyramid.h"

#include <bit>
#include <cmath>

#include "trace/base/cancel.h"

namespace trainprof {
namespace {

constexpr int kMostShift = 62;
// So many empty bins are cheaper than another run.
constexpr int64_t kMostEmptyBins = 8;
constexpr size_t kPitchSamples = 1000;

uint8_t BusyOf(Duration total, Duration length) {
  const double share = static_cast<double>(total.ns) / static_cast<double>(length.ns);
  return static_cast<uint8_t>(std::clamp(static_cast<int>(255 * share + 0.5), 1, 255));
}

// The first shift worth trying: four to eight events' usual distance. What takes too many columns
// is dropped.
int FirstShift(std::span<const TraceTime> begin) {
  std::vector<int64_t> pitches;
  const size_t stride = std::max<size_t>(begin.size() / kPitchSamples, 1);
  for (size_t i = 1; i < begin.size(); i += stride) {
    pitches.push_back((begin[i] - begin[i - 1]).ns);
  }
  const auto middle = pitches.begin() + static_cast<std::ptrdiff_t>(pitches.size() / 2);
  std::nth_element(pitches.begin(), middle, pitches.end());
  return std::min<int>(std::bit_width(static_cast<uint64_t>(*middle)) + 2, kMostShift);
}

}  // namespace

Column MakeColumn(Duration total, Category category, Duration length) {
  return {BusyOf(total, length), category};
}

Column MakeColumn(const CategoryTotals& totals, Category first, Duration length) {
  Duration sum;
  size_t most = 0;
  for (size_t c = 0; c < kCategories; ++c) {
    sum += totals[c];
    if (totals[c] > totals[most]) most = c;
  }
  return {BusyOf(sum, length), sum.ns == 0 ? first : static_cast<Category>(most)};
}

// Events come in time order, so that one bin a level is open at a time: a closed one is added to
// the bin above it.
class PyramidBuilder {
 public:
  PyramidBuilder(int finest_shift, size_t most_columns)
      : most_columns_(most_columns), open_(static_cast<size_t>(kMostShift - finest_shift + 1)) {
    pyramid_.finest_shift_ = finest_shift;
    pyramid_.levels_.resize(open_.size());
  }

  void Add(TraceTime begin, TraceTime end, Category category) {
    const auto shift = static_cast<int>(std::bit_width(static_cast<uint64_t>((end - begin).ns)));
    if (shift > kMostShift) return;  // longer than any bin
    const auto level = static_cast<size_t>(std::max(shift - pyramid_.finest_shift_, 0));
    for (size_t below = 0; below < level; ++below) Close(below);
    AddTo(level, begin, end, category);
    while (columns_ > most_columns_ && DropFinest()) {
    }
  }

  Pyramid Finish() && {
    for (size_t level = 0; level < open_.size(); ++level) Close(level);
    // Levels that hold nothing new: one bin, or two that a power of two keeps apart.
    while (pyramid_.levels_.size() > 1 && pyramid_.levels_.back().columns.size() <= 2 &&
           pyramid_.levels_[pyramid_.levels_.size() - 2].columns.size() <= 2) {
      pyramid_.levels_.pop_back();
    }
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

  // An event shorter than the level's bins: it touches two of them at most.
  void AddTo(size_t level, TraceTime begin, TraceTime end, Category category) {
    const int shift = pyramid_.finest_shift_ + static_cast<int>(level);
    const int64_t bin = begin.ns >> shift;
    const int64_t border = static_cast<int64_t>(static_cast<uint64_t>(bin + 1) << shift);
    Put(level, bin, category, 1u << static_cast<unsigned>(category));
    open_[level].total[static_cast<size_t>(category)].ns += std::min(end.ns, border) - begin.ns;
    if (end.ns <= border) return;
    Put(level, bin + 1, category, 1u << static_cast<unsigned>(category));
    open_[level].total[static_cast<size_t>(category)].ns += end.ns - border;
  }

  void Put(size_t level, int64_t bin, Category first, unsigned used) {
    if (open_[level].any && open_[level].bin != bin) Close(level);
    OpenBin& open = open_[level];
    if (!open.any) {
      open.any = true;
      open.bin = bin;
      open.first = first;
    }
    open.used = static_cast<uint16_t>(open.used | used);
  }

  void Close(size_t level) {
    OpenBin& open = open_[level];
    if (!open.any) return;
    const int shift = pyramid_.finest_shift_ + static_cast<int>(level);
    Store(pyramid_.levels_[level], open.bin,
          MakeColumn(open.total, open.first, Duration{int64_t{1} << shift}));
    if (level + 1 < open_.size()) {
      Put(level + 1, open.bin >> 1, open.first, open.used);
      OpenBin& above = open_[level + 1];
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

  void Store(Pyramid::Level& level, int64_t bin, Column column) {
    const size_t before = level.columns.size();
    int64_t empty = kMostEmptyBins + 1;
    if (!level.runs.empty()) {
      const Pyramid::Run& run = level.runs.back();
      empty = bin - run.first - static_cast<int64_t>(before - run.offset);
    }
    if (empty > kMostEmptyBins) {
      level.runs.push_back({bin, before});
      columns_ += sizeof(Pyramid::Run) / sizeof(Column);
    } else {
      level.columns.resize(before + static_cast<size_t>(empty));
    }
    level.columns.push_back(column);
    columns_ += level.columns.size() - before;
  }

  // Whether there was another level to fall back on.
  bool DropFinest() {
    if (open_.size() == 1) return false;
    Close(0);
    columns_ -= pyramid_.levels_[0].columns.size() +
                pyramid_.levels_[0].runs.size() * (sizeof(Pyramid::Run) / sizeof(Column));
    pyramid_.levels_.erase(pyramid_.levels_.begin());
    open_.erase(open_.begin());
    ++pyramid_.finest_shift_;
    return true;
  }

  size_t most_columns_;
  size_t columns_ = 0;  // of all levels, runs included by their size
  Pyramid pyramid_;
  std::vector<OpenBin> open_;  // by level
};

Pyramid Pyramid::Build(std::span<const TraceTime> begin, std::span<const TraceTime> end,
                       std::span<const Category> category) {
  if (begin.size() < kLeastEvents) return {};
  PyramidBuilder builder(FirstShift(begin),
                         std::min(kMostColumns, begin.size() / kEventsPerColumn));
  for (size_t i = 0; i < begin.size(); ++i) {
    CancelPoint(i);
    builder.Add(begin[i], end[i], category[i]);
  }
  return std::move(builder).Finish();
}

size_t Pyramid::size_bytes() const {
  size_t bytes = levels_.size() * sizeof(Level);
  for (const Level& level : levels_) {
    bytes += level.runs.size() * sizeof(Run) + level.columns.size() * sizeof(Column);
  }
  return bytes;
}

}  // namespace trainprof
