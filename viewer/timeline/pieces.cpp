#include "viewer/timeline/pieces.h"

#include <bit>
#include <cmath>

namespace trainprof {

Scale Scale::Of(const Interval& view, int32_t width_px, int32_t event_px) {
  Scale scale{.view = view, .width_px = width_px, .event_px = event_px};
  const __int128 length = view.Length().ns;
  const auto least = static_cast<int64_t>((length * event_px + width_px - 1) / width_px);
  scale.event_length = Duration{std::max<int64_t>(least, 1)};
  scale.shift = static_cast<int>(std::bit_width(static_cast<uint64_t>(scale.event_length.ns) - 1));
  return scale;
}

float Scale::PixelOf(TraceTime t) const {
  const double offset = static_cast<double>((t - view.begin).ns);
  return static_cast<float>(offset * width_px / static_cast<double>(view.Length().ns));
}

TraceTime Scale::TimeAt(double pixel) const {
  const double offset = pixel / width_px * static_cast<double>(view.Length().ns);
  return view.begin + Duration{static_cast<int64_t>(std::floor(offset))};
}

Hit HitTest(const Lane& lane, const Scale& scale, double pixel) {
  const TraceTime t = scale.TimeAt(pixel);
  Hit hit;
  VisitPieces(lane, scale, [&](const Piece& piece) {
    if (!piece.time.Contains(t)) return;
    hit.time = piece.time;
    hit.folded = piece.event == kFolded;
    hit.first = hit.folded ? lane.FirstEndingAfter(piece.time.begin) : piece.event;
    hit.last = hit.folded ? lane.FirstBeginningAt(piece.time.end, hit.first) : piece.event + 1;
  });
  return hit;
}

}  // namespace trainprof
