#include "viewer/timeline/lane_store.h"

#include <algorithm>
#include <functional>

#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// What the thread makes between two looks at what is wanted, on each core: 25 milliseconds, or one line.
constexpr size_t kEffortOfAJob = 500'000;

// Does not own them.
std::shared_ptr<const Lines> Borrowed(const Lines& lines) {
  return {std::shared_ptr<const Lines>(), &lines};
}

struct Order {
  uint32_t line = 0;
  Form form{};
};

Categorizer CategorizerOf(const Lines& lines, uint32_t line) {
  return Categorizer(*lines.ranks()[lines.lines()[line].rank].trace);
}

std::vector<LineContents> MakeAll(const Lines& lines, const std::vector<Order>& orders) {
  std::vector<LineContents> made(orders.size());
  std::vector<std::function<void()>> jobs;
  for (size_t i = 0; i < orders.size(); ++i) {
    jobs.emplace_back([&, i] {
      const auto [line, form] = orders[i];
      made[i] = MakeContents(lines, line, form, CategorizerOf(lines, line));
    });
  }
  RunAll(jobs);
  return made;
}

}  // namespace

LaneStore::LaneStore(std::shared_ptr<const Lines> lines) : lines_(std::move(lines)) {}

LaneStore::LaneStore(const Lines& lines) : LaneStore(Borrowed(lines)) {}

LaneStore::LaneStore(std::shared_ptr<const Lines> lines, LaneStore&& before)
    : LaneStore(std::move(before)) {
  const std::shared_ptr<const Lines> former = std::exchange(lines_, std::move(lines));
  std::erase_if(made_, [&](const auto& made) {
    const bool same = ShowTheSame(*former, *lines_, made.first.line);
    if (!same) size_bytes_ -= made.second.contents.size_bytes;
    return !same;
  });
}

LaneStore::LaneStore(const Lines& lines, LaneStore&& before)
    : LaneStore(Borrowed(lines), std::move(before)) {}

const std::vector<Lane>& LaneStore::LanesOf(uint32_t line) {
  return Make({line, Form::kLanes}).lanes;
}
const Lane& LaneStore::LaneOf(uint32_t line, Form form, uint32_t depth) {
  return Make(WhatOf(line, form)).lanes[depth];
}
const Series& LaneStore::SeriesOf(uint32_t line) { return Make({line, Form::kLanes}).series; }

LineContents& LaneStore::Make(const What& what) {
  if (const auto found = made_.find(what); found != made_.end()) {
    found->second.used = turn_;
    return found->second.contents;
  }
  return Keep(what, MakeContents(*lines_, what.line, what.form, CategorizerOf(*lines_, what.line)));
}

LineContents& LaneStore::Keep(const What& what, LineContents contents) {
  size_bytes_ += contents.size_bytes;
  std::erase_if(asked_, [&](const Asked& asked) { return asked.what == what; });
  return made_.emplace(what, Made{std::move(contents), turn_}).first->second.contents;
}

bool LaneStore::Ask(uint32_t line, Form form) {
  TakeOver();
  const What what = WhatOf(line, form);
  if (made_.contains(what)) {
    Make(what);  // it is in use
    return true;
  }
  const size_t effort = EffortFor(*lines_, line);
  if (effort <= effort_left_) {
    effort_left_ -= effort;
    Make(what);
    return true;
  }
  Remember(what);
  MakeNext();
  return false;
}

void LaneStore::Remember(const What& what) {
  const auto known = std::find_if(asked_.begin(), asked_.end(),
                                  [&](const Asked& asked) { return asked.what == what; });
  if (known == asked_.end()) {
    asked_.push_back({what, turn_});
  } else {
    known->turn = turn_;
  }
}

void LaneStore::TakeOver() {
  std::optional<std::vector<LineContents>> made = job_.Take();
  if (!made) return;
  for (size_t i = 0; i < made->size(); ++i) {
    const What& what = being_made_[i];
    if (made_.contains(what) || !ShowTheSame(*made_of_, *lines_, what.line)) continue;
    Keep(what, std::move((*made)[i]));
  }
  made_of_.reset();
}

void LaneStore::MakeNext() {
  if (job_.busy()) return;
  being_made_.clear();
  std::vector<Order> orders;
  const size_t most_effort = kEffortOfAJob * UsableCores();
  size_t effort = 0;
  for (const Asked& asked : asked_) {
    const auto [line, form] = asked.what;
    effort += EffortFor(*lines_, line);
    if (orders.size() >= UsableCores() && effort > most_effort) break;
    orders.push_back({line, form});
    being_made_.push_back(asked.what);
  }
  made_of_ = lines_;
  job_.Start([lines = lines_, orders = std::move(orders)] { return MakeAll(*lines, orders); });
}

void LaneStore::ForgetWhatNobodyAskedFor() {
  std::erase_if(asked_, [&](const Asked& asked) { return asked.turn != turn_; });
  const bool wanted = std::any_of(asked_.begin(), asked_.end(), [&](const Asked& asked) {
    return std::find(being_made_.begin(), being_made_.end(), asked.what) != being_made_.end();
  });
  if (!wanted) job_.Cancel();
}

void LaneStore::Trim(size_t most_bytes) {
  ForgetWhatNobodyAskedFor();
  effort_left_ = kMostEffortAtOnce;
  if (size_bytes_ > most_bytes) {
    std::vector<std::pair<uint64_t, What>> by_age;
    for (const auto& [what, made] : made_) {
      if (made.used != turn_) by_age.emplace_back(made.used, what);
    }
    std::sort(by_age.begin(), by_age.end());
    for (const auto& [used, what] : by_age) {
      if (size_bytes_ <= most_bytes) break;
      size_bytes_ -= made_[what].contents.size_bytes;
      made_.erase(what);
    }
  }
  ++turn_;
}

LaneStore::Place LaneStore::PlaceOf(const EventRef& event) {
  const uint32_t line = lines_->LineOf(event);
  if (line == kNoLine) return {};
  const Interval time = lines_->TimeOf(event);
  const std::vector<Lane>& lanes = LanesOf(line);
  for (uint32_t depth = 0; depth < lanes.size(); ++depth) {
    const Lane& lane = lanes[depth];
    size_t i = lane.FirstBeginningAt(time.begin);
    for (; i < lane.size() && lane.interval(i).begin == time.begin; ++i) {
      if (lane.table(i) == event.table && lane.row(i) == event.row) return {line, depth, i};
    }
  }
  return {};
}

EventRef LaneStore::RefOf(uint32_t line, uint32_t lane, size_t event) {
  const Lane& on = LanesOf(line)[lane];
  return {lines_->lines()[line].rank, on.table(event), on.row(event)};
}

}  // namespace trainprof
