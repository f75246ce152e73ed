#include "profiler/report/html_text.h"

#include <fmt/format.h>

#include "trace/io/printable.h"

namespace trainprof::html {
namespace {

std::string WithoutMarkup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("&<>\"'`").find(c) != std::string_view::npos) {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

std::string Escaped(std::string_view text) { return WithoutMarkup(OneLine(text)); }

std::string EscapedLines(std::string_view text) { return WithoutMarkup(SeveralLines(text)); }

std::string Paragraph(std::string_view text) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  std::string html = "<p>";
  for (const char c : EscapedLines(text)) {
    html += c;
    if (c == '\n') html.insert(html.size() - 1, "<br>");
  }
  return html + "</p>\n";
}

std::string Hex(Category category) { return fmt::format("#{:06x}", ColorOf(category)); }

std::string_view TextOn(Category category) {
  const uint32_t rgb = ColorOf(category);
  const uint32_t light =
      (299 * ((rgb >> 16) & 0xff) + 587 * ((rgb >> 8) & 0xff) + 114 * (rgb & 0xff)) / 1000;
  return light > 125 ? "#000" : "#fff";
}

std::string Swatch(Category category, bool idle) {
  std::string text = fmt::format(
      "<svg width=\"14\" height=\"14\" aria-hidden=\"true\"><rect width=\"14\" height=\"14\" fill=\"{}\"/>",
      Hex(category));
  if (idle) text += "<rect width=\"14\" height=\"14\" fill=\"url(#idle)\"/>";
  return text + "</svg>";
}

TableText::TableText(std::string_view caption, std::vector<Column> columns)
    : columns_(std::move(columns)) {
  text_ = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption>"
      "<thead><tr>",
      caption);
  for (const Column& column : columns_) {
    text_ += fmt::format("<th scope=\"col\"{}>{}</th>", column.is_number ? " class=\"n\"" : "",
                         column.title);
  }
  text_ += "</tr></thead><tbody>\n";
}

void TableText::AddRow(const std::vector<std::string>& cells) {
  text_ += "<tr>";
  for (size_t i = 0; i < cells.size(); ++i) {
    text_ += fmt::format("<td{}>{}</td>", columns_[i].is_number ? " class=\"n\"" : "", cells[i]);
  }
  text_ += "</tr>\n";
}

void TableText::Row(const std::vector<std::string>& cells) {
  ++rows_;
  AddRow(cells);
}

void TableText::Sum(const std::vector<std::string>& cells) {
  text_ += "</tbody><tfoot>\n";
  end_ = "</tfoot>";
  AddRow(cells);
}

std::string TableText::Finish() && { return fmt::format("{}{}</table></div>\n", text_, end_); }

}  // namespace trainprof::html
