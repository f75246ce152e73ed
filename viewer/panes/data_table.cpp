#include "viewer/panes/data_table.h"

#include <algorithm>
#include <numeric>
#include <string>

namespace trainprof {
namespace {

constexpr float kNamePoints = 200;  // the names' column keeps at least this
constexpr float kSquarePoints = 9;  // the square of a category's colour

// The highest rank for which there is room.
int ShownRank(std::span<const TableColumn> columns, const Theme& theme, float room) {
  int most = 0;
  for (const TableColumn& column : columns) most = std::max(most, column.rank);
  const float around = 2 * ImGui::GetStyle().CellPadding.x;
  for (; most > 0; --most) {
    float needed = 0;
    for (const TableColumn& column : columns) {
      if (column.rank > most || column.rank < 0) continue;
      needed += theme.Px(column.points == 0 ? kNamePoints : column.points) + around;
    }
    if (needed <= room) break;
  }
  return most;
}

}  // namespace

DataTable::DataTable(const PaneContext& context, const char* id,
                     std::span<const TableColumn> columns, int sorted_by)
    : context_(context) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_Sortable |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_SizingFixedFit |
                                     ImGuiTableFlags_NoSavedSettings;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  const int shown = ShownRank(columns, context.theme, room.x - ImGui::GetStyle().ScrollbarSize);
  open_ = ImGui::BeginTable(id, static_cast<int>(columns.size()), kFlags, room);
  if (!open_) return;
  for (size_t c = 0; c < columns.size(); ++c) {
    const TableColumn& column = columns[c];
    ImGuiTableColumnFlags flags =
        column.points == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed;
    if (c > 0) flags |= ImGuiTableColumnFlags_PreferSortDescending;
    if (static_cast<int>(c) == sorted_by) flags |= ImGuiTableColumnFlags_DefaultSort;
    if (column.rank > shown || column.rank < 0) flags |= ImGuiTableColumnFlags_Disabled;
    ImGui::TableSetupColumn(column.title, flags, context.theme.Px(column.points));
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableNextRow(ImGuiTableRowFlags_Headers);
  for (size_t c = 0; c < columns.size(); ++c) {
    if (!ImGui::TableSetColumnIndex(static_cast<int>(c))) continue;
    ImGui::TableHeader(columns[c].title);
    if (columns[c].tip != nullptr) Tooltip(columns[c].tip);
  }
}

DataTable::~DataTable() {
  if (open_) ImGui::EndTable();
}

void DataTable::Sort(SortedRows& order, uint64_t generation, size_t count,
                     const std::function<int(int, uint32_t, uint32_t)>& compare) {
  if (!open_) return;
  ImGuiTableSortSpecs* const specs = ImGui::TableGetSortSpecs();
  const bool chosen = specs != nullptr && specs->SpecsDirty;
  const bool same = order.generation == generation && order.rows.size() == count;
  if (same && !chosen) return;
  order.generation = generation;
  order.rows.resize(count);
  std::iota(order.rows.begin(), order.rows.end(), 0u);
  if (specs == nullptr || specs->SpecsCount == 0) return;
  const int column = specs->Specs[0].ColumnIndex;
  const bool descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
  std::stable_sort(order.rows.begin(), order.rows.end(), [&](uint32_t a, uint32_t b) {
    const int order_of = compare(column, a, b);
    return descending ? order_of > 0 : order_of < 0;
  });
  specs->SpecsDirty = false;
}

void DataTable::Rows(const SortedRows& order, const std::function<void(uint32_t)>& draw) {
  if (!open_) return;
  const KeyFocus& keys = context_.state.keys;
  const bool has_keys = keys.pane == KeyPane::kTables && keys.shown;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(order.rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      ImGui::TableNextRow();
      on_keys_ = has_keys && keys.row == static_cast<size_t>(i);
      draw(order.rows[static_cast<size_t>(i)]);
    }
  }
  on_keys_ = false;
  if (has_keys) GoToRow(order.rows.size(), clipper.ItemsHeight);
}

void DataTable::GoToRow(size_t rows, float row_height) {
  KeyFocus& keys = context_.state.keys;
  if (rows == 0 || row_height <= 0 || (keys.rows == 0 && keys.pages == 0)) return;
  const float shown = ImGui::GetWindowHeight() - 2 * row_height;  // below the titles
  const auto page = std::max<int64_t>(1, static_cast<int64_t>(shown / row_height));
  const int64_t wanted = static_cast<int64_t>(keys.row) + keys.rows + keys.pages * page;
  keys.row = static_cast<size_t>(std::clamp<int64_t>(wanted, 0, static_cast<int64_t>(rows) - 1));
  const float top = static_cast<float>(keys.row) * row_height;
  const float scroll = ImGui::GetScrollY();
  if (top < scroll) ImGui::SetScrollY(top);
  if (top > scroll + shown - row_height) ImGui::SetScrollY(top - shown + row_height);
}

bool DataTable::Cell() { return ImGui::TableNextColumn(); }

bool DataTable::NameCell(uint32_t row, std::string_view name, bool selected, ImU32 color,
                         std::string_view whole) {
  if (!ImGui::TableNextColumn()) return false;
  ImGui::PushID(static_cast<int>(row));
  const bool clicked = ImGui::Selectable("##row", selected, ImGuiSelectableFlags_SpanAllColumns);
  if (on_keys_) {
    ImGui::GetWindowDrawList()->AddRect(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(),
                                        context_.theme.text);
  }
  ImGui::PopID();
  ImGui::SameLine(0, 0);
  if (color != 0) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float line = ImGui::GetTextLineHeight();
    const float side = line * kSquarePoints / 14;
    const float top = at.y + (line - side) / 2;
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, top}, {at.x + side, top + side}, color);
    ImGui::SetCursorScreenPos({at.x + side * 1.5F, at.y});
  }
  CutText(name, 0, whole);
  return clicked || (on_keys_ && context_.state.keys.enter);
}

void DataTable::NumberCell(std::string_view number) {
  if (!ImGui::TableNextColumn()) return;
  const float width = ImGui::CalcTextSize(number.data(), number.data() + number.size()).x;
  const float room = ImGui::GetContentRegionAvail().x;
  if (width < room) ImGui::SetCursorPosX(ImGui::GetCursorPosX() + room - width);
  Text(number);
}

}  // namespace trainprof
