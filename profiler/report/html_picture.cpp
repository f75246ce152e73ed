#include "profiler/report/html_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "profiler/report/html_text.h"
#include "profiler/report/text.h"

namespace trainprof::html {
namespace {

constexpr double kUnits = 1000;  // the width of a picture
constexpr double kLeast = 2;     // units of a bar that stands by itself
constexpr size_t kColumns = 500;
constexpr int kLabelHeight = 15;
constexpr int kBarHeight = 22;
constexpr int kLaneHeight = kLabelHeight + kBarHeight + 5;
constexpr double kLetter = 6.2;  // units of a letter of a label
constexpr size_t kMostTitle = 160;

// What is short, summed up: by column and category.
class Columns {
 public:
  explicit Columns(const Interval& view) : view_(view) {}

  void Add(const PictureBar& bar) {
    const double length = static_cast<double>(view_.Length().ns) / kColumns;
    const auto first =
        static_cast<size_t>(static_cast<double>((bar.time.begin - view_.begin).ns) / length);
    for (size_t c = first; c < std::min(first + 2, kColumns); ++c) {
      const TraceTime begin =
          view_.begin + Duration{static_cast<int64_t>(length * static_cast<double>(c))};
      const TraceTime end =
          view_.begin + Duration{static_cast<int64_t>(length * static_cast<double>(c + 1))};
      const Interval part = Intersect(bar.time, {begin, end});
      if (part.Empty()) continue;
      any_ = true;
      time_[c][static_cast<size_t>(bar.category)] += part.Length();
    }
  }

  // One path a colour and density.
  std::string Paths(int y) const {
    if (!any_) return "";
    std::map<std::pair<size_t, int>, std::string> paths;
    const double length = static_cast<double>(view_.Length().ns) / kColumns;
    for (size_t c = 0; c < kColumns; ++c) {
      const auto most = std::max_element(time_[c].begin(), time_[c].end());
      int64_t total = 0;
      for (const Duration each : time_[c]) total += each.ns;
      if (total == 0) continue;
      const double share = std::min(1.0, static_cast<double>(total) / length);
      const int density = 1 + std::min(3, static_cast<int>(share * 4));
      paths[{static_cast<size_t>(most - time_[c].begin()), density}] +=
          fmt::format("M{} {}h2v{}h-2z", 2 * c, y, kBarHeight);
    }
    std::string text;
    for (const auto& [key, path] : paths) {
      text += fmt::format("<path fill=\"{}\" fill-opacity=\"{}\" d=\"{}\"/>\n",
                          Hex(static_cast<Category>(key.first)), 0.25 * key.second, path);
    }
    return text;
  }

 private:
  Interval view_;
  bool any_ = false;
  std::vector<std::array<Duration, kCategories>> time_{kColumns};
};

std::string LengthText(Duration length) {
  const double ms = length.ToMilliseconds();
  return ms >= 0.1 ? fmt::format("{:.3f} ms", ms) : fmt::format("{:.1f} us", 1000 * ms);
}

std::string LaneSvg(const Interval& view, const PictureLane& lane, int top) {
  const int y = top + kLabelHeight;
  std::string text = fmt::format(
      "<text x=\"0\" y=\"{}\" font-size=\"11\" font-family=\"sans-serif\" class=\"label\">{}</text>\n",
      top + 11, Escaped(ShortName(lane.label, kMostTitle)));
  const double scale = kUnits / static_cast<double>(view.Length().ns);
  Columns columns(view);
  std::string alone;
  std::string hatched;
  for (const PictureBar& bar : lane.bars) {
    const Interval time = Intersect(bar.time, view);
    if (time.Empty()) continue;
    const double x = static_cast<double>((time.begin - view.begin).ns) * scale;
    const double width = static_cast<double>(time.Length().ns) * scale;
    if (width < kLeast) {
      columns.Add({time, bar.category, bar.idle, bar.name});
      continue;
    }
    const std::string name = Escaped(ShortName(bar.name, kMostTitle));
    alone += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" fill=\"{}\"><title>{}: {}</title></rect>\n",
        x, y, width, kBarHeight, Hex(bar.category), name, LengthText(bar.time.Length()));
    if (bar.idle)
      hatched += fmt::format("M{:.1f} {}h{:.1f}v{}H{:.1f}z", x, y, width, kBarHeight, x);
    const auto letters = static_cast<size_t>(std::max(0.0, (width - 6) / kLetter));
    if (letters < 4) continue;
    alone += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" font-size=\"11\" font-family=\"sans-serif\" fill=\"{}\" "
        "pointer-events=\"none\">{}</text>\n",
        x + 3, y + 15, TextOn(bar.category), Escaped(ShortName(bar.name, letters)));
  }
  text += columns.Paths(y) + alone;
  // Under the labels it would be better; over them it is seen.
  if (!hatched.empty()) {
    text += fmt::format("<path fill=\"url(#idle)\" pointer-events=\"none\" d=\"{}\"/>\n", hatched);
  }
  return text;
}

std::string Opening(const std::string& title, int height, std::string_view kind) {
  return fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><svg class=\"{1}\" viewBox=\"0 0 {2} "
      "{3}\" width=\"100%\" role=\"img\" aria-label=\"{0}\">\n",
      Escaped(title), kind, kUnits, height);
}

}  // namespace

std::string LanesSvg(const std::string& title, const Interval& view,
                     std::span<const PictureLane> lanes) {
  if (view.Empty()) return "";
  constexpr int kTicks = 5;
  std::string drawn;
  int top = 0;
  for (const PictureLane& lane : lanes) {
    const bool is_empty =
        std::all_of(lane.bars.begin(), lane.bars.end(),
                    [&](const PictureBar& bar) { return Intersect(bar.time, view).Empty(); });
    if (is_empty) continue;
    drawn += LaneSvg(view, lane, top);
    top += kLaneHeight;
  }
  std::string text = Opening(title, top + 18, "lanes") + drawn;
  const bool is_short = view.Length() < Microseconds(100);
  const double length = view.Length().ToMilliseconds() * (is_short ? 1000 : 1);
  for (int i = 0; i < kTicks; ++i) {
    const double x = kUnits * i / kTicks;
    text += fmt::format(
        "<path d=\"M{0} {1}v4\" stroke=\"#888\"/><text x=\"{0}\" y=\"{2}\" font-size=\"10\" "
        "font-family=\"sans-serif\" class=\"label\">{3:.{5}f} {4}</text>\n",
        x, top, top + 14, length * i / kTicks, is_short ? "us" : "ms", is_short ? 1 : 3);
  }
  return text + "</svg></div>\n";
}

std::string StepsSvg(const std::string& title, std::span<const StepColumn> steps, Duration limit) {
  constexpr double kHeight = 140;
  if (steps.empty() || limit.ns <= 0) return "";
  std::string text = Opening(title, static_cast<int>(kHeight), "steps");
  std::map<std::pair<Category, bool>, std::string> paths;
  std::string titles;
  const double width = kUnits / static_cast<double>(steps.size());
  for (size_t s = 0; s < steps.size(); ++s) {
    const double x = width * static_cast<double>(s);
    double y = kHeight;
    for (const PictureBar& part : steps[s].parts) {
      const double height = std::min(
          y, kHeight * static_cast<double>(part.time.Length().ns) / static_cast<double>(limit.ns));
      if (height < 0.05) continue;
      y -= height;
      paths[{part.category, part.idle}] +=
          fmt::format("M{:.2f} {:.1f}h{:.2f}v{:.1f}H{:.2f}z", x, y, 0.86 * width, height, x);
    }
    titles += fmt::format(
        "<rect x=\"{:.2f}\" width=\"{:.2f}\" height=\"{}\" fill=\"#000\" fill-opacity=\"0\"><title>{}</title></rect>\n",
        x, width, kHeight, Escaped(steps[s].title));
  }
  for (const auto& [key, path] : paths) {
    text += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", Hex(key.first), path);
    if (key.second) text += fmt::format("<path fill=\"url(#idle)\" d=\"{}\"/>\n", path);
  }
  return text + titles + "</svg></div>\n";
}

std::string_view HatchDefinition() {
  return "<svg width=\"0\" height=\"0\" aria-hidden=\"true\"><defs><pattern id=\"idle\" width=\"6\" height=\"6\" "
         "patternUnits=\"userSpaceOnUse\"><path d=\"M0 6L6 0\" stroke=\"#fff\" stroke-opacity=\".45\" "
         "stroke-width=\"1.5\"/></pattern></defs></svg>\n";
}

}  // namespace trainprof::html
