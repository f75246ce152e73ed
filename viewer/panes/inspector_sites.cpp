// The tab of source lines: what each makes the host wait for, and what it launches.
#include <fmt/format.h>

#include "viewer/navigation/ruler.h"
#include "viewer/panes/inspector.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

enum SiteColumn { kSite, kBlocked, kWaits, kLaunches, kAllocations, kCalls, kLongest };

constexpr TableColumn kSiteColumns[] = {
    {"source line"},
    {"blocked", 76, 0, "time in calls that waited for the device"},
    {"waits", 58, 1, "calls that waited for the device"},
    {"launches", 68, 1, "kernels, graphs, copies, memsets"},
    {"allocs", 56, 3, "calls that allocate or free"},
    {"calls", 62, 2},
    {"longest", 70, 3},
};

int CompareRows(SiteColumn column, const SiteRow& a, const SiteRow& b) {
  switch (column) {
    case kSite:
      return Compare(SiteText(a.site), SiteText(b.site));
    case kWaits:
      return Compare(a.blocking, b.blocking);
    case kLaunches:
      return Compare(a.launches, b.launches);
    case kAllocations:
      return Compare(a.allocations, b.allocations);
    case kCalls:
      return Compare(a.site.count, b.site.count);
    case kLongest:
      return Compare(a.longest, b.longest);
    case kBlocked:
      break;
  }
  return Compare(a.blocked, b.blocked);
}

void DrawRow(DataTable& table, State& state, uint32_t rank, const SiteRow& row, uint32_t index) {
  const EventRef longest{rank, Table::kApi, row.longest_row};
  const bool selected = state.selected == longest;
  if (table.NameCell(index, SiteText(ShortSite(row.site)), selected)) Select(state, longest);
  DataTable::NumberCell(ShortText(row.blocked));
  DataTable::NumberCell(Grouped(static_cast<int64_t>(row.blocking)));
  DataTable::NumberCell(Grouped(static_cast<int64_t>(row.launches)));
  DataTable::NumberCell(Grouped(static_cast<int64_t>(row.allocations)));
  DataTable::NumberCell(Grouped(row.site.count));
  DataTable::NumberCell(ShortText(row.longest));
}

}  // namespace

void DrawSites(PaneContext& context) {
  InspectorCache& cache = context.cache.inspector;
  State& state = context.state;
  const Scope scope = ScopeOf(context, false);
  const RankModel* const model = state.document->Model(scope.rank);
  if (model == nullptr) return ScopeLine(context, scope, false);
  constexpr size_t kCallsAtOnce = kEventsAtOnce / 20;  // looking for a site takes that much longer
  const std::vector<SiteRow>* const rows =
      cache.sites.Get(scope, model->trace.api.size() <= kCallsAtOnce,
                      [owner = state.document, model, window = scope.window] {
                        return MakeSiteTable(*model, window);
                      });
  ScopeLine(context, scope, rows != nullptr);
  if (rows == nullptr) return;
  if (rows->empty()) {
    return WrappedText(model->trace.api.size() == 0
                           ? "No calls of the CUDA runtime were recorded, so that no source line "
                             "can be charged with one."
                           : "No calls of the CUDA runtime here.");
  }
  DataTable table(context, "sites", kSiteColumns, kBlocked);
  table.Sort(cache.sites_order, cache.sites.generation(), rows->size(),
             [&](int column, uint32_t a, uint32_t b) {
               return CompareRows(static_cast<SiteColumn>(column), (*rows)[a], (*rows)[b]);
             });
  table.Rows(cache.sites_order,
             [&](uint32_t row) { DrawRow(table, state, scope.rank, (*rows)[row], row); });
}

}  // namespace trainprof
