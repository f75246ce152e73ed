#include "analysis/host/call_sites.h"

#include <algorithm>
#include <filesystem>
#include <tuple>

#include "trace/base/cancel.h"
#include "trace/symbols/demangle.h"

namespace trainprof {
namespace {

// "./src/../train.py" and "src//../train.py" are "train.py".
std::string NormalPath(std::string_view file) {
  const auto has = [&](std::string_view part) { return file.find(part) != std::string_view::npos; };
  const bool odd = has("//") || has("/./") || has("/../") || file.starts_with("./");
  if (!odd || has("://")) return std::string(file);
  return std::filesystem::path(file).lexically_normal().string();
}

void SetPlaceOf(const Trace& trace, const CallFrame& frame, Site& site) {
  site.file = NormalPath(trace.Text(frame.file));
  site.line = frame.line;
  site.function = trace.Text(frame.function);
}

}  // namespace

Row InnermostRange(const RangeTable& ranges, TrackId thread, TraceTime at) {
  const auto [first, last] = ranges.rows_of(thread);
  const auto begin = ranges.begin.begin();
  const auto after = std::upper_bound(begin + first, begin + last, at);
  if (after == begin + first) return kNoRow;
  Row row{static_cast<uint32_t>(after - begin) - 1};
  while (row != kNoRow && ranges.end(Index(row)) <= at) row = ranges.parent[Index(row)];
  return row;
}

bool SiteFinder::UserFrameOf(Row range, Site& site) const {
  bool found = false;
  trace_.stacks.ForEachFrame(trace_.ranges.stack[Index(range)], [&](const CallFrame& frame) {
    found = frame.is_user && frame.HasLine();
    if (found) SetPlace(frame, site);
    return !found;
  });
  return found;
}

void SiteFinder::SetPlace(const CallFrame& frame, Site& site) const {
  SetPlaceOf(trace_, frame, site);
}

bool SiteInStack(const Trace& trace, StackId stack, Site& site) {
  bool found = false;
  StringId op = kEmptyString;
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    if (!frame.HasPlace()) return true;
    if (frame.is_user) {
      SetPlaceOf(trace, frame, site);
      site.function = ShortFunctionName(site.function);
      found = true;
    } else if (frame.function != kEmptyString) {
      op = frame.function;  // the last one stands directly in the user's line
    }
    return !found;
  });
  if (!found) return false;
  site.op = ShortFunctionName(trace.Text(op));
  site.count = 1;
  return true;
}

bool SiteFinder::FindInStacks(Row call, Site& site) const {
  if (SiteInStack(trace_, trace_.api.stack[Index(call)], site)) return true;
  const Row same = callers_.Of(call);
  return same != kNoRow && SiteInStack(trace_, trace_.api.stack[Index(same)], site);
}

Site SiteFinder::FindRange(Row range) const {
  const RangeTable& ranges = trace_.ranges;
  const CallFrame* frame = openings_.Of(range);
  if (frame == nullptr) return Find(ranges.track[Index(range)], ranges.begin[Index(range)]);
  Site site;
  SetPlace(*frame, site);
  site.function = ShortFunctionName(site.function);
  site.op = trace_.Text(ranges.name[Index(range)]);
  site.count = 1;
  return site;
}

Site SiteFinder::FindCall(Row call) const {
  Site site;
  if (SiteInStack(trace_, trace_.api.stack[Index(call)], site)) return site;
  // Of a program without stacks, or a Python one: its own frames are ranges.
  Site around = Find(trace_.api.track[Index(call)], trace_.api.begin[Index(call)]);
  return around.file.empty() && FindInStacks(call, site) ? site : around;
}

Site SiteFinder::Find(TrackId thread, TraceTime at) const {
  Site site;
  site.count = 1;
  std::string annotation;
  for (Row row = InnermostRange(trace_.ranges, thread, at); row != kNoRow;
       row = trace_.ranges.parent[Index(row)]) {
    const size_t i = Index(row);
    const std::string_view name = trace_.Text(trace_.ranges.name[i]);
    const NameFacts facts = trace_.Facts(trace_.ranges.name[i]);
    if (trace_.ranges.kind[i] == RangeKind::kCpuOp) site.op = name;
    if (trace_.ranges.kind[i] == RangeKind::kUserAnnotation && annotation.empty() &&
        !facts.is_step && !facts.is_profiler_step) {
      annotation = name;
    }
    if (UserFrameOf(row, site)) return site;
  }
  site.function = annotation.empty() ? site.op : annotation;
  return site;
}

void AddSite(std::vector<Site>& sites, const Site& site) {
  const auto same =
      std::find_if(sites.begin(), sites.end(), [&](const Site& s) { return s.SamePlace(site); });
  if (same == sites.end()) {
    sites.push_back(site);
  } else {
    same->count += site.count;
  }
}

// As InnermostRange, from where the last one was.
Row SiteTally::RangeAt(TrackId thread, TraceTime at) {
  const RangeTable& ranges = trace_.ranges;
  const auto [first, last] = ranges.rows_of(thread);
  const auto begin = ranges.begin.begin();
  if (thread != thread_ || after_ < first || (after_ > first && begin[after_ - 1] > at)) {
    after_ = first;
  }
  thread_ = thread;
  // Twice as far each time, and then between the last two.
  uint32_t step = 1;
  while (after_ + step < last && begin[after_ + step] <= at) {
    after_ += step;
    step *= 2;
  }
  after_ = static_cast<uint32_t>(
      std::upper_bound(begin + after_, begin + std::min(last, after_ + step + 1), at) - begin);
  if (after_ == first) return kNoRow;
  Row row{after_ - 1};
  while (row != kNoRow && ranges.end(Index(row)) <= at) row = ranges.parent[Index(row)];
  return row;
}

size_t SiteTally::IndexOf(const Site& site) {
  const auto same =
      std::find_if(found_.begin(), found_.end(), [&](const Site& s) { return s.SamePlace(site); });
  if (same != found_.end()) return static_cast<size_t>(same - found_.begin());
  found_.push_back(site);
  found_.back().count = 0;
  return found_.size() - 1;
}

// Mostly within what was open the last time. A range stands behind those around it.
uint64_t SiteTally::MetOf(Row range) {
  inner_.clear();
  Row row = range;
  for (; row != kNoRow; row = trace_.ranges.parent[Index(row)]) {
    while (!open_.empty() && row < open_.back().first) open_.pop_back();
    if (!open_.empty() && open_.back().first == row) break;
    inner_.push_back(row);
  }
  if (row == kNoRow) open_.clear();
  while (!inner_.empty()) {
    const size_t i = Index(inner_.back());
    const uint64_t around = open_.empty() ? 0 : open_.back().second;
    const Met key{around, trace_.ranges.name[i], trace_.ranges.stack[i], trace_.ranges.kind[i]};
    open_.emplace_back(inner_.back(), met_.try_emplace(key, met_.size() + 1).first->second);
    inner_.pop_back();
  }
  return open_.empty() ? 0 : open_.back().second;
}

size_t SiteTally::IndexAt(TrackId thread, TraceTime at) {
  const uint64_t met = MetOf(RangeAt(thread, at));
  if (met >= site_of_met_.size()) site_of_met_.resize(met_.size() + 1, kNoSite);
  size_t& site = site_of_met_[met];
  if (site == kNoSite) site = IndexOf(sites_.Find(thread, at));
  return site;
}

size_t SiteTally::IndexInStack(Row call) {
  const StackId stack = call == kNoRow ? kNoStack : trace_.api.stack[Index(call)];
  if (stack == kNoStack) return kNoSite;
  const auto [it, is_new] = site_of_stack_.try_emplace(stack, kNoSite);
  if (is_new) {
    Site site;
    if (SiteInStack(trace_, stack, site)) it->second = IndexOf(site);
  }
  return it->second;
}

void SiteTally::Count(size_t index) {
  if (found_[index].count++ == 0) order_.push_back(index);
}

void SiteTally::Add(TrackId thread, TraceTime at) { Count(IndexAt(thread, at)); }

void SiteTally::AddCall(Row call) {
  size_t at = IndexInStack(call);
  if (at == kNoSite) {
    at = IndexAt(trace_.api.track[Index(call)], trace_.api.begin[Index(call)]);
    const size_t same = found_[at].file.empty() ? IndexInStack(sites_.callers_.Of(call)) : kNoSite;
    if (same != kNoSite) at = same;
  }
  Count(at);
}

std::vector<Site> SiteFinder::FindCalls(std::span<const Row> calls) const {
  SiteTally tally(trace_, *this);
  for (size_t i = 0; i < calls.size(); ++i) {
    CancelPoint(i);
    if (calls[i] != kNoRow) tally.AddCall(calls[i]);
  }
  return std::move(tally).Take();
}

std::vector<Site> SiteFinder::FindLaunches(std::span<const Row> ops) const {
  std::vector<Row> calls;
  calls.reserve(ops.size());
  for (const Row op : ops) calls.push_back(trace_.device_ops.launch[Index(op)]);
  return FindCalls(calls);
}

std::vector<Site> SiteTally::Take() && {
  std::vector<Site> sites;
  sites.reserve(order_.size());
  for (const size_t index : order_) sites.push_back(std::move(found_[index]));
  return sites;
}

void SortSites(std::vector<Site>& sites) {
  std::sort(sites.begin(), sites.end(), [](const Site& a, const Site& b) {
    // A line says more than a name: stacks are taken of some calls of a site only.
    if (a.file.empty() != b.file.empty()) return b.file.empty();
    return std::tie(b.count, a.file, a.line, a.function, a.op) <
           std::tie(a.count, b.file, b.line, b.function, b.op);
  });
}

}  // namespace trainprof
