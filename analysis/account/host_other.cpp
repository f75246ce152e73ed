// Labels each event of the thread by what covers it, flattens the labels, and sums them up.
#include "analysis/account/host_other.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analysis/host/timeline.h"

namespace trainprof {
namespace {

// A report has no room for more; what is left is summed up.
constexpr size_t kMostItems = 50;
constexpr size_t kMostInside = 5;

using KeyId = int32_t;
constexpr KeyId kNone = -1;
constexpr size_t kOtherKinds = static_cast<size_t>(OtherKind::kNothing) + 1;

// What time goes to: a line of the list, and one below it.
struct Label {
  KeyId top = kNone;
  KeyId inside = kNone;
  bool operator==(const Label&) const = default;
};

// What covers a moment, as far as the open events tell.
struct Cover {
  KeyId outer_range = kNone;
  KeyId inner_range = kNone;
  // Within the innermost range:
  KeyId own_function = kNone;    // the user's, innermost
  KeyId module = kNone;          // nn.Module, outermost
  KeyId outer_function = kNone;  // of any file
  KeyId op = kNone;              // outermost
  KeyId call = kNone;            // outermost
  KeyId loop_function = kNone;   // covers whole steps, innermost

  KeyId Detail() const {
    for (KeyId key : {own_function, module, outer_function, op, call, loop_function}) {
      if (key != kNone) return key;
    }
    return kNone;
  }
  Label Resolve() const {
    if (outer_range == kNone) return {Detail(), kNone};
    return {outer_range, inner_range != outer_range ? inner_range : Detail()};
  }
};

class Labeller {
 public:
  Labeller(const Trace& trace, const Steps& steps, const IntervalSet& other)
      : trace_(trace), steps_(steps), other_(other) {}

  // Events in time order, outer first.
  void Add(const Interval& interval, bool is_api, Row row) {
    while (!open_.empty() && open_.back().end <= interval.begin) open_.pop_back();
    Cover cover = CoverOf(interval);
    const KeyId own = is_api ? AddCall(row, cover) : AddRange(interval, row, cover);
    const Label label = cover.Resolve();
    const bool shows = own != kNone && (own == label.top || own == label.inside);
    if (shows && within_other_.TotalWithin(interval).ns > 0) ++counts_[static_cast<size_t>(own)];
    pieces_.Add(interval, label);
    open_.push_back({interval.end, cover});
  }

  OtherTime Sum() {
    pieces_.Finish();
    OtherTime out;
    out.total = other_.Total();
    for (auto it = totals_.begin(); it != totals_.end();) {
      const KeyId top = it->first.first;
      OtherItem item = ItemOf(top, {});
      for (; it != totals_.end() && it->first.first == top; ++it) {
        const auto& [key, total] = *it;
        item.total += total;
        if (key.second != kNone) item.inside.push_back(ItemOf(key.second, total));
      }
      Shorten(item.inside, kMostInside);
      out.items.push_back(std::move(item));
    }
    Shorten(out.items, kMostItems);
    if (named_ < out.total) {
      out.items.push_back({OtherKind::kNothing, "", out.total - named_, 0});
    }
    return out;
  }

 private:
  struct Open {
    TraceTime end;
    Cover cover;
  };

  // What is open and covers half of it at least: torch's ProfilerStep#2 begins within the call of
  // prof.step() that ended the one before it, and goes on for long.
  Cover CoverOf(const Interval& interval) const {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      const Duration covered = std::min(open->end, interval.end) - interval.begin;
      if (2 * covered.ns >= interval.Length().ns) return open->cover;
    }
    return {};
  }

  KeyId KeyOf(OtherKind kind, std::string_view name) {
    const auto [it, is_new] =
        known_.try_emplace({kind, std::string(name)}, static_cast<KeyId>(known_.size()));
    if (is_new) {
      keys_.push_back(&it->first);
      counts_.push_back(0);
      is_users_.push_back(kind == OtherKind::kRange);
    }
    return it->second;
  }
  // The same by the string's id: looks at each distinct name once.
  KeyId KeyOf(OtherKind kind, StringId id) {
    std::vector<KeyId>& of_kind = of_string_[static_cast<size_t>(kind)];
    if (of_kind.empty()) of_kind.assign(trace_.strings.size(), kNone);
    KeyId& known = of_kind[Index(id)];
    if (known != kNone) return known;
    std::string_view name = trace_.Text(id);
    const bool counts = !name.empty() && name.back() >= '0' && name.back() <= '9';
    if (kind == OtherKind::kRange && counts) {
      const std::string_view base = names_internal::WithoutCounter(name);
      if (!base.empty()) name = base;
    }
    if (kind == OtherKind::kPython) name = WithoutAddress(name);
    return known = KeyOf(kind, name);
  }

  bool IsUsers(Row function) const {
    const StackId stack = trace_.ranges.stack[Index(function)];
    return stack != kNoStack && trace_.stacks.frame(trace_.stacks.innermost(stack)).is_user;
  }
  bool CoversAStep(const Interval& interval) const {
    const auto step =
        std::partition_point(steps_.steps.begin(), steps_.steps.end(),
                             [&](const Step& s) { return s.range.begin < interval.begin; });
    return step != steps_.steps.end() && step->range.end <= interval.end;
  }

  void Count(const Interval& piece, const Label& label) {
    if (label.top == kNone) return;
    const Duration part = of_piece_.TotalWithin(piece);
    if (part.ns == 0) return;
    named_ += part;
    if (last_ == nullptr || !(last_label_ == label)) {
      last_ = &totals_[{label.top, label.inside}];
      last_label_ = label;
    }
    *last_ += part;
  }

  static KeyId SetOnce(KeyId& key, KeyId value) {
    if (key == kNone) key = value;
    return value;
  }
  KeyId AddCall(Row call, Cover& cover) {
    return SetOnce(cover.call, KeyOf(OtherKind::kCall, trace_.api.name[Index(call)]));
  }
  KeyId AddRange(const Interval& interval, Row row, Cover& cover) {
    const StringId id = trace_.ranges.name[Index(row)];
    switch (trace_.ranges.kind[Index(row)]) {
      case RangeKind::kGpuAnnotation:
      case RangeKind::kDeviceRow:  // a device's, whatever it is
        return kNone;
      case RangeKind::kUserAnnotation: {
        if (trace_.Facts(id).is_step || CoversAStep(interval)) return kNone;
        const KeyId key = KeyOf(OtherKind::kRange, id);
        const KeyId outer = cover.outer_range == kNone ? key : cover.outer_range;
        cover = Cover{};
        cover.outer_range = outer;
        return cover.inner_range = key;
      }
      case RangeKind::kPythonFunction:
        return AddFunction(interval, row, cover);
      case RangeKind::kCpuOp:
        return SetOnce(cover.op, KeyOf(OtherKind::kOperator, id));
      case RangeKind::kOverhead:
        return SetOnce(cover.op, KeyOf(OtherKind::kOverhead, id));
      case RangeKind::kOther:
        break;
    }
    return CoversAStep(interval) ? kNone : SetOnce(cover.op, KeyOf(OtherKind::kEvent, id));
  }
  KeyId AddFunction(const Interval& interval, Row row, Cover& cover) {
    const StringId id = trace_.ranges.name[Index(row)];
    const KeyId key = KeyOf(OtherKind::kPython, id);
    if (IsUsers(row)) is_users_[static_cast<size_t>(key)] = true;
    if (CoversAStep(interval)) return cover.loop_function = key;
    if (is_users_[static_cast<size_t>(key)]) return cover.own_function = key;
    if (trace_.Text(id).starts_with("nn.Module")) SetOnce(cover.module, key);
    return SetOnce(cover.outer_function, key);
  }

  OtherItem ItemOf(KeyId key, Duration total) const {
    const auto& [kind, name] = *keys_[static_cast<size_t>(key)];
    const auto i = static_cast<size_t>(key);
    return {kind, name, total, counts_[i], is_users_[i]};
  }
  // Largest first; what is past `most` becomes one item.
  static void Shorten(std::vector<OtherItem>& items, size_t most) {
    std::sort(items.begin(), items.end(), [](const OtherItem& a, const OtherItem& b) {
      return std::tie(b.total, a.kind, a.name) < std::tie(a.total, b.kind, b.name);
    });
    if (items.size() <= most) return;
    OtherItem more{OtherKind::kMore, "", {}, static_cast<int64_t>(items.size() - most)};
    for (size_t i = most; i < items.size(); ++i) more.total += items[i].total;
    items.resize(most);
    items.push_back(std::move(more));
  }

  const Trace& trace_;
  const Steps& steps_;
  const IntervalSet& other_;
  IntervalReader within_other_{other_};  // of events
  IntervalReader of_piece_{other_};
  std::vector<Open> open_;
  // By what covers a time, and what of that is inside (kNone: nothing). References last.
  std::map<std::pair<KeyId, KeyId>, Duration> totals_;
  Duration* last_ = nullptr;  // of these, the one added to last
  Label last_label_{};
  Duration named_;
  struct Counter {
    Labeller* labeller;
    void operator()(const Interval& piece, const Label& label) const {
      labeller->Count(piece, label);
    }
  };
  Flattener<Label, Counter> pieces_{Counter{this}};
  std::map<std::pair<OtherKind, std::string>, KeyId> known_;
  std::array<std::vector<KeyId>, kOtherKinds> of_string_;  // by kind and string, once it was met
  std::vector<const std::pair<OtherKind, std::string>*> keys_;
  std::vector<int64_t> counts_;
  std::vector<bool> is_users_;
};

// The account's "other", as times.
IntervalSet UnnamedTime(const Steps& steps, const HostAccount& account) {
  std::vector<Interval> named;
  for (const Segment<Phase>& segment : account.phases) named.push_back(segment.interval);
  IntervalSet unnamed = steps.window.Minus(IntervalSet::Union(std::move(named)));
  for (const auto& [c, set] : account.Unnamed()) unnamed = unnamed.Minus(*set);
  return unnamed;
}

}  // namespace

std::string_view Name(OtherKind kind) {
  constexpr std::string_view kNames[] = {"range", "python",   "operator", "call",
                                         "event", "overhead", "more",     "nothing_recorded"};
  return kNames[static_cast<size_t>(kind)];
}

OtherTime OpenOther(const Trace& trace, const Steps& steps, const HostAccount& account) {
  const IntervalSet other = UnnamedTime(steps, account);
  Labeller labeller(trace, steps, other);
  if (steps.thread != kNoTrack && !other.Empty()) {
    VisitThread(trace, steps.thread, [&](const Interval& interval, bool is_api, Row row) {
      labeller.Add(interval, is_api, row);
    });
  }
  return labeller.Sum();
}

}  // namespace trainprof
