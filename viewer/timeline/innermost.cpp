#include "viewer/timeline/innermost.h"

#include <algorithm>

namespace trainprof {
namespace {

// Whether it says of all that is inside why the time was spent.
bool IsCause(Category category) {
  return category == Category::kInputWait || category == Category::kIo;
}

}  // namespace

void InnermostMaker::Add(const Interval& event, uint32_t depth, Category category, Table table,
                         Row row) {
  CloseDownTo(depth);
  RunInnermostUntil(event.begin);
  at_ = std::max(at_, event.begin);
  if (is_strip_ && !open_.empty() && IsCause(open_.back().category)) {
    category = open_.back().category;
  }
  open_.push_back({event, category, table, row});
}

Lane InnermostMaker::Finish() {
  CloseDownTo(0);
  Flush();
  lane_.Finish();
  return std::move(lane_);
}

void InnermostMaker::CloseDownTo(size_t depth) {
  while (open_.size() > depth) {
    RunInnermostUntil(open_.back().event.end);
    open_.pop_back();
  }
}

// An event that outlasts the one around it has no gap behind it: the outer one ended before.
void InnermostMaker::RunInnermostUntil(TraceTime end) {
  if (open_.empty()) return;
  const Open& of = open_.back();
  end = std::min(end, of.event.end);
  if (end <= at_) return;
  const bool goes_on =
      last_.of.table == of.table && last_.of.row == of.row && last_.time.end == at_;
  if (!goes_on) {
    Flush();
    last_ = {{at_, at_}, of, open_.size() == 1};
  }
  last_.time.end = at_ = end;
}

void InnermostMaker::Flush() {
  const bool around_others = last_.is_outermost && last_.time != last_.of.event;
  if (!last_.time.Empty() && (!is_strip_ || !around_others)) {
    lane_.Add(last_.time.begin, last_.time.end, last_.of.category, last_.of.table, last_.of.row);
  }
  last_ = {};
}

}  // namespace trainprof
