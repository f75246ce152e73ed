// Pictures of time as SVG: lanes of events, as many as a page has room for. Presentation attributes alone, so that
// they show where a page's styles are forbidden.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/tables/category.h"
#include "trace/base/interval_set.h"

namespace trainprof::html {

struct PictureBar {
  Interval time;
  Category category{};
  bool idle = false;
  std::string_view name;
};

// Events of a lane: may touch, and reach beyond what is shown.
struct PictureLane {
  std::string label;
  std::vector<PictureBar> bars;
};

// Bars of two units or more stand by themselves, with a title; what is shorter is summed up in columns of two units,
// in the colour that took most of them, as dense as they were busy. O(bars).
std::string LanesSvg(const std::string& title, const Interval& view,
                     std::span<const PictureLane> lanes);

// Of one step: what it went to, from below.
struct StepColumn {
  std::string title;
  std::vector<PictureBar> parts;  // their lengths count
};
// A bar a step; those that are longer than `limit` are cut there.
std::string StepsSvg(const std::string& title, std::span<const StepColumn> steps, Duration limit);

// The pattern that idle time is hatched with; once a page.
std::string_view HatchDefinition();

}  // namespace trainprof::html
