// The tabs of kernels and of operators: what took the time, by name.
#include <fmt/format.h>

#include "analysis/kernel_title.h"
#include "viewer/navigation/ruler.h"
#include "viewer/panes/inspector.h"
#include "viewer/state/actions.h"

namespace trainprof {
namespace {

enum NameColumn { kName, kCount, kTotal, kSelf, kPerStep, kMean, kMedian, kMost, kShare };

constexpr TableColumn kDeviceColumns[] = {
    {"name"},
    {"count", 62, 1},
    {"total", 70, 2},
    {"self", 70, -1},
    {"ms/step", 62, 0, "total time / steps"},
    {"mean", 62, 3},
    {"median", 62, 4},
    {"max", 66, 2},
    {"share", 52, 0, "of the time of all of them"},
};
constexpr TableColumn kHostColumns[] = {
    {"name"},
    {"count", 62, 1},
    {"total", 70, 2, "with what ran inside"},
    {"self", 70, 2, "without what ran inside"},
    {"ms/step", 62, 0, "self time / steps"},
    {"mean", 62, 3},
    {"median", 62, 4},
    {"max", 66, 2},
    {"share", 52, 0, "of all self time"},
};

// A trace without steps has nothing to divide by; a table whose events do not nest, no self time.
std::vector<TableColumn> ColumnsFor(NamedEvents what, bool has_steps) {
  const bool nests = TableOf(what) == Table::kRanges;
  const auto all = nests ? std::span(kHostColumns) : std::span(kDeviceColumns);
  std::vector<TableColumn> columns(all.begin(), all.end());
  constexpr int kNever = -1;
  if (!has_steps) columns[kPerStep].rank = kNever;
  if (!has_steps && !nests) columns[kTotal].rank = 0;
  if (!has_steps && nests) columns[kSelf].rank = 0;
  if (!nests) columns[kSelf].rank = kNever;
  return columns;
}

int CompareRows(const Trace& trace, NameColumn column, const NameRow& a, const NameRow& b) {
  switch (column) {
    case kName:
      return Compare(trace.Text(a.name), trace.Text(b.name));
    case kCount:
      return Compare(a.count, b.count);
    case kTotal:
      return Compare(a.total, b.total);
    case kMean:
      return Compare(a.Mean(), b.Mean());
    case kMedian:
      return Compare(a.median, b.median);
    case kMost:
      return Compare(a.longest, b.longest);
    case kSelf:
    case kPerStep:
    case kShare:
      break;
  }
  return Compare(a.self, b.self);
}

// The search that finds the events of a name, as far as a quoted part can say it.
std::string SearchFor(std::string_view name) {
  constexpr size_t kEnough = 120;
  name = name.substr(0, name.find('"'));
  return fmt::format("name:\"{}\"", FirstOf(name, kEnough));
}

class NamesTab {
 public:
  NamesTab(PaneContext& context, NamedEvents what)
      : context_(context),
        state_(context.state),
        what_(what),
        pane_(context.cache.inspector.names[static_cast<size_t>(what)]),
        scope_(ScopeOf(context, what == NamedEvents::kDeviceOps)),
        trace_(state_.document->TraceOf(scope_.rank)) {}

  void Draw() {
    const NameTable* const table = Get();
    ScopeLine(context_, scope_, table != nullptr);
    if (table == nullptr) return;
    if (table->rows.empty()) return WrappedText(EmptyText());
    const std::vector<TableColumn> columns = ColumnsFor(what_, scope_.steps > 0);
    // An order of its own for each kind.
    constexpr const char* kIds[] = {"operations", "operators", "calls", "Python"};
    DataTable shown(context_, kIds[static_cast<size_t>(what_)], columns, kShare);
    shown.Sort(pane_.order, pane_.table.generation(), table->rows.size(),
               [&](int column, uint32_t a, uint32_t b) {
                 return CompareRows(trace_, static_cast<NameColumn>(column), table->rows[a],
                                    table->rows[b]);
               });
    shown.Rows(pane_.order, [&](uint32_t row) { DrawRow(shown, *table, row); });
  }

 private:
  const NameTable* Get() {
    const size_t events = what_ == NamedEvents::kDeviceOps ? trace_.device_ops.size()
                          : what_ == NamedEvents::kCalls   ? trace_.api.size()
                                                           : trace_.ranges.size();
    const auto make = [owner = state_.document, trace = &trace_, what = what_,
                       window = scope_.window] { return MakeNameTable(*trace, what, window); };
    return pane_.table.Get(scope_, events <= kEventsAtOnce, make);
  }

  std::string EmptyText() const {
    if (what_ == NamedEvents::kDeviceOps) {
      return trace_.device_ops.size() == 0
                 ? "No GPU work was recorded. The quality tab says what the recorder saw."
                 : "No GPU work here.";
    }
    return "Nothing of this kind was recorded here.";
  }

  void DrawRow(DataTable& shown, const NameTable& table, uint32_t index) {
    const NameRow& row = table.rows[index];
    const EventRef longest{scope_.rank, TableOf(what_), row.longest_row};
    const std::string_view name = trace_.Text(row.name);
    const bool selected = state_.selected && IsNamed(*state_.selected, row.name);
    const ImU32 color = context_.theme.Of(row.category);
    const bool is_kernel = what_ == NamedEvents::kDeviceOps;
    const std::string_view title = is_kernel ? KernelTitle(name) : name;
    if (shown.NameCell(index, title.empty() ? "(no name)" : title, selected, color, name)) {
      RunSearch(state_, SearchFor(name));
      Select(state_, longest);
    }
    DataTable::NumberCell(Grouped(static_cast<int64_t>(row.count)));
    DataTable::NumberCell(ShortText(row.total));
    DataTable::NumberCell(ShortText(row.self));
    const double steps = static_cast<double>(std::max<int64_t>(scope_.steps, 1));
    DataTable::NumberCell(fmt::format("{:.3f}", row.self.ToMilliseconds() / steps));
    DataTable::NumberCell(ShortText(row.Mean()));
    DataTable::NumberCell(ShortText(row.median));
    DataTable::NumberCell(ShortText(row.longest));
    DataTable::NumberCell(fmt::format("{:.1f} %", 100 * RankAnalysis::Part(row.self, table.self)));
  }

  bool IsNamed(const EventRef& event, StringId name) const {
    if (event.rank != scope_.rank || event.table != TableOf(what_)) return false;
    return ColumnsOf(trace_, event.table)->name[Index(event.row)] == name;
  }

  PaneContext& context_;
  State& state_;
  const NamedEvents what_;
  NamesPane& pane_;
  const Scope scope_;
  const Trace& trace_;
};

}  // namespace

void DrawKernels(PaneContext& context) { NamesTab(context, NamedEvents::kDeviceOps).Draw(); }

void DrawOps(PaneContext& context) {
  NamedEvents& what = context.cache.inspector.inputs.ops;
  const auto choice = [&](const char* title, NamedEvents of) {
    if (ImGui::RadioButton(title, what == of)) what = of;
    ImGui::SameLine();
  };
  ImGui::PushStyleVar(ImGuiStyleVar_FrameBorderSize, 1);
  ImGui::PushStyleColor(ImGuiCol_Border, context.theme.text_dim);
  choice("operators", NamedEvents::kOperators);
  choice("calls", NamedEvents::kCalls);
  choice("Python", NamedEvents::kPython);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::NewLine();
  NamesTab(context, what).Draw();
}

}  // namespace trainprof
