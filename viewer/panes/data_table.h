// Tables of the inspector: columns that are sorted by a click on their title, rows that are drawn
// only where they are seen, numbers that stand below each other.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "viewer/panes/inspector_cache.h"
#include "viewer/panes/widgets.h"

namespace trainprof {

struct TableColumn {
  const char* title;
  float points = 0;  // of width; 0: has the space that is left
  int rank = 0;      // where there is too little room the highest ranks are left out; < 0: always
  const char* tip = nullptr;
};

class DataTable {
 public:
  // Fills the space that is left. The first column has the rows' names; `sorted_by` is the column
  // that the table is sorted by at first, largest values first.
  DataTable(const PaneContext& context, const char* id, std::span<const TableColumn> columns,
            int sorted_by);
  ~DataTable();
  DataTable(const DataTable&) = delete;
  DataTable& operator=(const DataTable&) = delete;

  // Sorts the rows anew where the table or the user's choice has changed. `compare(column, a, b)`:
  // < 0 when row a is smaller. O(n log n), else O(1).
  void Sort(SortedRows& order, uint64_t generation, size_t count,
            const std::function<int(int column, uint32_t a, uint32_t b)>& compare);
  // Draws the rows that are seen, and goes to that of the keyboard.
  void Rows(const SortedRows& order, const std::function<void(uint32_t row)>& draw);

  // The next cell; false when its column is not shown.
  static bool Cell();
  // The cell that names the row and is clicked; true when it was, or Enter was pressed on it.
  // `color`: of a mark before it. `whole`: what its tooltip says, where that is more than `name`.
  bool NameCell(uint32_t row, std::string_view name, bool selected, ImU32 color = 0,
                std::string_view whole = {});
  static void NumberCell(std::string_view number);

 private:
  void GoToRow(size_t rows, float row_height);

  const PaneContext& context_;
  bool open_ = false;
  bool on_keys_ = false;  // the row that is drawn
};

template <class T>
int Compare(const T& a, const T& b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace trainprof
