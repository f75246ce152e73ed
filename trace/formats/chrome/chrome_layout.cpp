#include "trace/formats/chrome/chrome_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace trainprof {
namespace {

constexpr uint32_t kRowsOfPiece = 1024;  // some 250 KB: what a core has in its cache

// What is known of a row, in a list in the order of the rows; null where nothing is.
template <class T>
const T* Known(const std::vector<std::pair<uint32_t, T>>& list, uint32_t row) {
  if (list.empty()) return nullptr;
  const auto at = std::lower_bound(list.begin(), list.end(), row,
                                   [](const auto& each, uint32_t r) { return each.first < r; });
  return at != list.end() && at->first == row ? &at->second : nullptr;
}

}  // namespace

ChromeLayout::ChromeLayout(const Trace& trace, RankNamespace* rank)
    : trace_(trace),
      rank_(rank),
      is_recording_(!HasChromeWords(trace)),
      lanes_(trace),
      shift_ns_(trace.base_ns - WholeMicroseconds(trace.base_ns)) {
  if (!is_recording_) return;  // an import's are among its arguments
  NumberSteps();
  PlaceOpenings();
}

ChromeLanes::Place ChromeLayout::PlaceOf(TrackId track) const {
  ChromeLanes::Place place = lanes_.PlaceOf(track);
  if (rank_ != nullptr) rank_->FindPid(place.pid, place.pid);
  return place;
}

std::vector<ChromePiece> ChromeLayout::Pieces() const {
  std::vector<ChromePiece> pieces;
  const auto add = [&](ChromePiece::Kind kind, Table table, size_t rows) {
    for (size_t first = 0; first < rows; first += kRowsOfPiece) {
      const size_t last = std::min<size_t>(rows, first + kRowsOfPiece);
      pieces.push_back({kind, table, static_cast<uint32_t>(first), static_cast<uint32_t>(last), 0});
    }
  };
  const auto add_table = [&](Table table) {
    ForEachTable(trace_, [&](Table each, const auto& rows) {
      if (each == table) add(ChromePiece::Kind::kTable, table, rows.size());
    });
  };
  add_table(Table::kRanges);
  add_table(Table::kApi);
  add_table(Table::kDeviceOps);
  ForEachTable(trace_, [&]<class T>(Table each, const T&) {
    if constexpr (DescribedTable<T>) add_table(each);
  });
  add_table(Table::kInstants);
  add_table(Table::kCounters);
  add_table(Table::kFlows);
  // A recording has the launch of each operation as a column; viewers want an arrow.
  if (is_recording_) {
    const size_t first_arrow = pieces.size();
    add(ChromePiece::Kind::kLaunchArrows, Table::kDeviceOps, trace_.device_ops.size());
    uint32_t arrows = 0;
    for (size_t i = first_arrow; i < pieces.size(); ++i) {
      pieces[i].arrows_before = arrows;
      for (uint32_t row = pieces[i].first; row < pieces[i].last; ++row) {
        arrows += trace_.device_ops.launch[row] != kNoRow ? 1 : 0;
      }
    }
  }
  add(ChromePiece::Kind::kOthers, {}, trace_.others.size());
  return pieces;
}

bool ChromeLayout::IsRenamedStep(uint32_t range) const {
  const StringId name = trace_.ranges.name[range];
  return trace_.ranges.kind[range] == RangeKind::kUserAnnotation && trace_.Facts(name).is_step &&
         !trace_.Text(name).starts_with("ProfilerStep#");
}

void ChromeLayout::NumberSteps() {
  std::vector<int64_t> steps_of_track(trace_.tracks.size());
  for (uint32_t row = 0; row < trace_.ranges.size(); ++row) {
    if (!IsRenamedStep(row)) continue;
    step_number_.emplace_back(row, steps_of_track[Index(trace_.ranges.track[row])]++);
  }
}

std::string ChromeLayout::StepName(uint32_t range) const {
  const int64_t* const number = Known(step_number_, range);
  if (number == nullptr) return {};
  const std::string_view name = trace_.Text(trace_.ranges.name[range]);
  const size_t digits = name.find_first_of("0123456789");
  if (digits != std::string_view::npos) return fmt::format("ProfilerStep#{}", name.substr(digits));
  return fmt::format("ProfilerStep#{}", *number);
}

void ChromeLayout::PlaceOpenings() {
  std::map<std::pair<ProcessId, StringId>, std::vector<StackId>> left;
  std::vector<bool> is_opened(trace_.openings.empty() ? 0 : trace_.strings.size());
  for (const Opening& opening : trace_.openings) {
    if (trace_.Facts(opening.name).is_step) continue;  // which have another name in the file
    left[{opening.process, opening.name}].push_back(opening.stack);
    is_opened[Index(opening.name)] = true;
  }
  if (left.empty()) return;
  for (uint32_t row = 0; row < trace_.ranges.size(); ++row) {
    const StringId name = trace_.ranges.name[row];
    if (!is_opened[Index(name)]) continue;
    const auto it = left.find({trace_.ProcessOf(trace_.ranges.track[row]), name});
    if (it == left.end()) continue;
    opening_.emplace_back(row, it->second.back());
    it->second.pop_back();
    if (it->second.empty()) left.erase(it);
  }
}

StackId ChromeLayout::OpeningOf(uint32_t range) const {
  const StackId* const stack = Known(opening_, range);
  return stack != nullptr ? *stack : kNoStack;
}

}  // namespace trainprof
