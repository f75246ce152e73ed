#include "viewer/app/layout.h"

#include <algorithm>

#include "viewer/app/splitter.h"

namespace trainprof {
namespace {

// In points. Ribbon and overview grow a little with the window; the ribbon has room for its head
// and three causes.
constexpr float kRibbonLeast = 68, kRibbonMost = 110, kRibbonShare = 0.09f;
constexpr float kOverviewLeast = 28, kOverviewMost = 56, kOverviewShare = 0.045f;
constexpr float kBottomLeast = 110;
constexpr float kPaneLeast = 200;       // width of each pane of the bottom
constexpr float kInspectorLeast = 300;  // which holds tables

}  // namespace

Layout LayoutOf(const Settings& settings, float width, float height, float scale) {
  Layout layout;
  const float splitter = kSplitterPoints * scale;
  const auto strip = [&](bool shown, float share, float least, float most) {
    return shown ? std::clamp(height * share, least * scale, most * scale) : 0;
  };
  layout.ribbon = strip(settings.show_ribbon, kRibbonShare, kRibbonLeast, kRibbonMost);
  layout.overview = strip(settings.show_overview, kOverviewShare, kOverviewLeast, kOverviewMost);
  const float left = std::max(0.f, height - layout.ribbon - layout.overview);
  if (settings.show_bottom) {
    const float most = std::max(0.f, (left - splitter) / 2);
    layout.bottom = std::min(std::max(settings.bottom_height, kBottomLeast) * scale, most);
  }
  layout.timeline = std::max(0.f, left - layout.bottom - (settings.show_bottom ? splitter : 0));
  const float widths = std::max(0.f, width - 2 * splitter);
  // Where the window is too narrow for all, each has its part.
  const float share = std::min(1.f, widths / ((2 * kPaneLeast + kInspectorLeast) * scale));
  const float pane = kPaneLeast * scale * share;
  const float inspector = kInspectorLeast * scale * share;
  const float findings_most = std::max(pane, widths - pane - inspector);
  layout.findings = std::clamp(settings.findings_width * scale, pane, findings_most);
  const float selection_most = std::max(pane, widths - layout.findings - inspector);
  layout.selection = std::clamp(settings.selection_width * scale, pane, selection_most);
  layout.inspector = std::max(0.f, widths - layout.findings - layout.selection);
  return layout;
}

}  // namespace trainprof
