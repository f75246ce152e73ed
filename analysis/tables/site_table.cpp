#include "analysis/tables/site_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/tables/name_table.h"
#include "trace/base/cancel.h"

namespace trainprof {
namespace {

using Place = std::tuple<std::string, int64_t, std::string, std::string>;

constexpr size_t kCallsBetween = 1 << 10;  // two cancel points

void AddCall(SiteRow& row, ApiKind kind, bool blocks, Duration part, Row call) {
  ++row.site.count;
  if (StartsWork(kind)) ++row.launches;
  if (kind == ApiKind::kAllocate || kind == ApiKind::kFree) ++row.allocations;
  const bool first_that_blocks = blocks && row.blocking == 0;
  if (blocks) {
    ++row.blocking;
    row.blocked += part;
  }
  if (first_that_blocks || (blocks == (row.blocking > 0) && part > row.longest)) {
    row.longest = part;
    row.longest_row = call;
  }
}

}  // namespace

std::vector<SiteRow> MakeSiteTable(const RankModel& model, const IntervalSet& window) {
  const Trace& trace = model.trace;
  const Cutter cutter(window);
  std::map<Place, SiteRow> sites;
  for (uint32_t row = 0; row < trace.api.size(); ++row) {
    if (row % kCallsBetween == 0) CancelPoint();
    Duration part;
    if (!cutter.Cut(trace.api.interval(Row{row}), &part)) continue;
    Site site = model.sites.FindCall(Row{row});
    SiteRow& sum = sites[{site.file, site.line, site.function, site.op}];
    if (sum.longest_row == kNoRow) {
      site.count = 0;
      sum.site = std::move(site);
      sum.longest = Duration{-1};
    }
    AddCall(sum, trace.api.kind[row], model.blocking_calls[row], part, Row{row});
  }
  std::vector<SiteRow> rows;
  rows.reserve(sites.size());
  for (auto& [place, row] : sites) rows.push_back(std::move(row));
  std::stable_sort(rows.begin(), rows.end(), [](const SiteRow& a, const SiteRow& b) {
    if (a.blocked != b.blocked) return a.blocked > b.blocked;
    return a.site.count > b.site.count;
  });
  return rows;
}

std::string SiteText(const Site& site) {
  std::string text = site.file.empty() ? site.function : fmt::format("{}:{}", site.file, site.line);
  if (!site.file.empty() && !site.function.empty()) text += " " + site.function;
  if (!site.op.empty() && site.op != site.function) text += " (" + site.op + ")";
  return text.empty() ? "source not recorded" : text;
}

Site ShortSite(Site site) {
  const size_t name = site.file.rfind('/');
  if (name == std::string::npos || name == 0) return site;
  const size_t folder = site.file.rfind('/', name - 1);
  if (folder != std::string::npos) site.file.erase(0, folder + 1);
  return site;
}

}  // namespace trainprof
