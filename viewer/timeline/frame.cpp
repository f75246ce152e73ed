#include "viewer/timeline/frame.h"

namespace trainprof {
namespace {

// `busy` of 255, in steps from 1 on: what is hardly there is still to be seen.
uint8_t StepOf(int busy, uint8_t steps) {
  return static_cast<uint8_t>(std::clamp((busy * steps + 127) / 255, 1, int{steps}));
}

// Joins neighbouring columns that look the same.
class RectMaker {
 public:
  RectMaker(Frame& frame, uint32_t lane, bool by_height)
      : frame_(frame), lane_(lane), by_height_(by_height) {}

  void Add(const Piece& piece) {
    const float left = frame_.scale.PixelOf(piece.time.begin);
    const float right = frame_.scale.PixelOf(piece.time.end);
    if (piece.event != kFolded) {
      const auto event = static_cast<uint32_t>(piece.event);
      frame_.rects.push_back({left, right, lane_, event, piece.column.category, kShades, kHeights});
      open_ = false;
      return;
    }
    const uint8_t shade = by_height_ ? kShades : StepOf(piece.column.busy, kShades);
    const uint8_t height = by_height_ ? StepOf(piece.column.busy, kHeights) : kHeights;
    if (open_ && end_ == piece.time.begin && frame_.rects.back().shade == shade &&
        frame_.rects.back().height == height &&
        frame_.rects.back().category == piece.column.category) {
      frame_.rects.back().right = right;
    } else {
      frame_.rects.push_back({left, right, lane_, kNoEvent, piece.column.category, shade, height});
    }
    end_ = piece.time.end;
    open_ = true;
  }

 private:
  Frame& frame_;
  uint32_t lane_;
  bool by_height_;
  bool open_ = false;  // the last rectangle is a column of this lane
  TraceTime end_;
};

// Whether all lanes fit.
bool Fill(std::span<const FrameLane> lanes, size_t most_rects, Frame& frame) {
  frame.rects.clear();
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    if (lanes[lane].lane == nullptr) continue;
    RectMaker maker(frame, static_cast<uint32_t>(lane), lanes[lane].by_height);
    VisitPieces(*lanes[lane].lane, frame.scale, [&](const Piece& piece) { maker.Add(piece); });
    if (frame.rects.size() > most_rects) return false;
  }
  return true;
}

}  // namespace

void BuildFrame(std::span<const FrameLane> lanes, const Interval& view, int32_t width_px,
                Frame& frame, size_t most_rects) {
  lanes = lanes.first(std::min(lanes.size(), kMostLanes));
  int32_t event_px = 2;
  do {
    frame.scale = Scale::Of(view, width_px, event_px);
    event_px *= 2;
    // At event_px >= width_px a lane has four pieces at most: an event at each edge of the view,
    // and between them two columns, as the grid has at most one line in the view.
  } while (!Fill(lanes, most_rects, frame) && frame.scale.event_px < width_px);
}

}  // namespace trainprof
