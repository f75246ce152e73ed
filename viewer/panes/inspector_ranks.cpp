// The tab of ranks: who is slow, what each one's GPU waited for, who begins its steps late.
#include <fmt/format.h>

#include <algorithm>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/inspector.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

constexpr int kFirstClass = 5;  // columns of classes of device time stand behind these

enum RankColumn { kRank, kMeanStep, kMedianStep, kBusy, kLate };

// Columns of the classes in the order in which they are most asked for.
constexpr DeviceClass kClasses[] = {
    DeviceClass::kIdleInputWait,    DeviceClass::kExposedCommunication,
    DeviceClass::kIdleLaunchBound,  DeviceClass::kIdleSyncDrain,
    DeviceClass::kExposedCopy,      DeviceClass::kIdleHostWork,
    DeviceClass::kIdlePython,       DeviceClass::kIdleOtherDevice,
    DeviceClass::kIdleCollective,   DeviceClass::kIdleAllocation,
    DeviceClass::kIdleHostFunction, DeviceClass::kIdlePreempted,
    DeviceClass::kIdleDependency,   DeviceClass::kIdleIo,
    DeviceClass::kIdleUnrecorded,   DeviceClass::kIdleUnknown};

constexpr TableColumn kRankColumns[] = {
    {"rank"},
    {"mean step", 76, 0, "ms from begin to begin"},
    {"median", 62, 2, "ms of the steps' own ranges"},
    {"GPU busy", 70, 0, "share of the time, of the GPU that did least"},
    {"late", 62, 1,
     "ms/step: how much less it waits for the others than the rank that waits longest or, where waits "
     "were not recorded, how much later than the first it begins a step, by the files' clocks"},
    {"input", 52, 1, "ms/step: GPU idle, input wait"},
    {"comm", 52, 1, "ms/step: communication that nothing hides"},
    {"launch", 54, 2, "ms/step: GPU idle, launch-bound: the host issues too slowly"},
    {"sync", 52, 2, "ms/step: GPU idle, sync drain: the queue refills after a sync"},
    {"copy", 52, 3, "ms/step: copies that nothing hides"},
    {"work", 52, 3, "ms/step: GPU idle, the host did what a range or line of the user's names"},
    {"Python", 54, 3, "ms/step: GPU idle, the host ran Python"},
    {"device", 54, 3, "ms/step: GPU idle, waiting for another device"},
    {"ranks", 52, 3, "ms/step: GPU idle, waiting for other ranks"},
    {"alloc", 52, 4, "ms/step: GPU idle, the host allocated memory"},
    {"function", 60, 4, "ms/step: GPU idle, a host function in the stream"},
    {"preempted", 66, 4, "ms/step: GPU idle, another thread had the host's core"},
    {"hand-over", 66, 4, "ms/step: GPU idle, hand-over between queued operations"},
    {"I/O", 52, 4, "ms/step: GPU idle, the host saved or logged"},
    {"unrec.", 52, 5, "ms/step: unrecorded, device work is missing from the trace"},
    {"unknown", 60, 5, "ms/step: GPU idle, unknown: nothing recorded says why"},
};
static_assert(std::size(kRankColumns) == kFirstClass + std::size(kClasses));

double ClassMs(const RankRow& row, int column) {
  return row.device_ms[static_cast<size_t>(kClasses[column - kFirstClass])];
}

int CompareRows(int column, const RankRow& a, const RankRow& b) {
  if (column >= kFirstClass) return Compare(ClassMs(a, column), ClassMs(b, column));
  switch (column) {
    case kRank:
      return Compare(a.number, b.number);
    case kMedianStep:
      return Compare(a.median_ms, b.median_ms);
    case kBusy:
      return Compare(a.busy, b.busy);
    case kLate:
      return Compare(a.late, b.late);
    default:
      return Compare(a.mean_ms, b.mean_ms);
  }
}

std::string BusyText(const RankRow& row) {
  if (row.busy < 0) return "no GPU";
  constexpr double kVisible = 0.0005;
  if (row.busy_high - row.busy < kVisible) return fmt::format("{:.1f} %", 100 * row.busy);
  return fmt::format("{:.0f}-{:.0f} %", 100 * row.busy, 100 * row.busy_high);
}

void DrawRow(DataTable& table, State& state, const RankRow& row, uint32_t index) {
  const bool shown = row.rank == ShownRank(state);
  if (table.NameCell(index, RankName(state, row.rank), shown)) {
    ShowRank(state, row.rank);
    const auto lines = state.lines().lines();
    for (uint32_t line = 0; line < lines.size(); ++line) {
      if (lines[line].rank != row.rank || lines[line].kind != LineKind::kRank) continue;
      state.collapsed.erase(line);
      Reveal(state, line);
      break;
    }
  }
  DataTable::NumberCell(fmt::format("{:.3f}", row.mean_ms));
  DataTable::NumberCell(row.steps > 0 ? fmt::format("{:.3f}", row.median_ms) : "");
  DataTable::NumberCell(BusyText(row));
  DataTable::NumberCell(row.late ? ShortText(*row.late) : "");
  for (int column = kFirstClass; column < static_cast<int>(std::size(kRankColumns)); ++column) {
    DataTable::NumberCell(row.busy < 0 ? "" : fmt::format("{:.2f}", ClassMs(row, column)));
  }
}

}  // namespace

void DrawRanks(PaneContext& context) {
  State& state = context.state;
  InspectorCache& cache = context.cache.inspector;
  if (!cache.ranks) {
    std::vector<const RankAnalysis*> analyses;
    for (uint32_t rank = 0; rank < state.document->ranks(); ++rank) {
      analyses.push_back(state.document->Analysis(rank));
    }
    cache.ranks = MakeRankTable(state.lines().clock(), analyses);
  }
  const std::vector<RankRow>& rows = *cache.ranks;
  if (rows.empty()) return Text("computing ...");
  std::vector<TableColumn> columns(std::begin(kRankColumns), std::end(kRankColumns));
  constexpr int kNever = -1;
  if (std::none_of(rows.begin(), rows.end(),
                   [](const RankRow& row) { return row.late.has_value(); })) {
    columns[kLate].rank = kNever;
    if (rows.size() > 1 && !state.lines().aligned()) {
      WrappedText("The ranks' clocks do not agree: who is late cannot be told.");
    }
  }
  DataTable table(context, "ranks", columns, kMeanStep);
  table.Sort(cache.ranks_order, 0, rows.size(), [&](int column, uint32_t a, uint32_t b) {
    return CompareRows(column, rows[a], rows[b]);
  });
  table.Rows(cache.ranks_order, [&](uint32_t row) { DrawRow(table, state, rows[row], row); });
}

}  // namespace trainprof
