// What pages are written with: text that cannot become mark-up, colours, cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/tables/category.h"

namespace trainprof::html {

// As text or as an attribute's value: no mark-up, on one line, nothing that a terminal or a reader of
// right-to-left text would obey (trace/io/printable.h).
std::string Escaped(std::string_view text);
std::string EscapedLines(std::string_view text);  // the same, with its lines
// A paragraph, with each line of the text on one of its own.
std::string Paragraph(std::string_view text);

std::string Hex(Category category);          // "#0072b2"
std::string_view TextOn(Category category);  // "#000" or "#fff", whichever reads better on it
std::string Swatch(Category category,
                   bool idle);  // a small picture of the colour; idle time is hatched

// Of a table. Numbers stand right, and are not broken.
struct Column {
  std::string_view title;
  bool is_number = true;
};
inline Column Words(std::string_view title) { return {title, false}; }

// A table that html.js makes sortable, within a box that scrolls by itself. Cells are mark-up: of Escaped, or of
// numbers.
class TableText {
 public:
  TableText(std::string_view caption, std::vector<Column> columns);
  void Row(const std::vector<std::string>& cells);
  void Sum(const std::vector<std::string>& cells);  // of all rows: it stays below them
  size_t rows() const { return rows_; }
  std::string Finish() &&;

 private:
  void AddRow(const std::vector<std::string>& cells);

  const std::vector<Column> columns_;
  std::string text_;
  std::string_view end_ = "</tbody>";
  size_t rows_ = 0;
};

}  // namespace trainprof::html
