#include "trace/build/canonical_order.h"

#include <string_view>
#include <tuple>

namespace trainprof {
namespace {

// Sorts `items` and returns the new place of each old one.
template <class T, class Before>
std::vector<uint32_t> SortAndNumber(std::vector<T>& items, Before before) {
  std::vector<uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return before(items[a], items[b]); });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  std::vector<uint32_t> place(items.size());
  for (uint32_t i = 0; i < order.size(); ++i) {
    sorted.push_back(items[order[i]]);
    place[order[i]] = i;
  }
  items = std::move(sorted);
  return place;
}

// Numbers `items` by the first row of `column` that refers to each; the others go.
template <class Column, class T>
void OrderByFirst(Column& column, typename Column::value_type none, std::vector<T>& items) {
  using Id = typename Column::value_type;
  if (items.empty()) return;
  std::vector<T> ordered;
  ordered.reserve(items.size());
  std::vector<Id> place(items.size(), none);
  if (std::vector<Id>* const rows = StoredRows(column)) {
    for (Id& id : *rows) {
      if (id == none) continue;
      Id& to = place[Index(id)];
      if (to == none) {
        to = Id{static_cast<uint32_t>(ordered.size())};
        ordered.push_back(items[Index(id)]);
      }
      id = to;
    }
  }
  items = std::move(ordered);
}

}  // namespace

void OrderTracks(Trace& trace) {
  const std::vector<uint32_t> process_place = SortAndNumber(
      trace.processes, [](const Process& a, const Process& b) { return a.pid < b.pid; });
  const std::vector<uint32_t> device_place =
      SortAndNumber(trace.devices, [](const Device& a, const Device& b) { return a.id < b.id; });
  for (Track& track : trace.tracks) {
    track.process = ProcessId{process_place[Index(track.process)]};
    if (track.device != kNoDevice) track.device = DeviceId{device_place[Index(track.device)]};
  }
  for (Gap& gap : trace.gaps) gap.process = ProcessId{process_place[Index(gap.process)]};
  for (Opening& opening : trace.openings) {
    opening.process = ProcessId{process_place[Index(opening.process)]};
  }
  SortAndNumber(trace.openings, [&](const Opening& a, const Opening& b) {
    return std::tuple(a.process, trace.Text(a.name)) < std::tuple(b.process, trace.Text(b.name));
  });
  const std::vector<uint32_t> place =
      SortAndNumber(trace.tracks, [](const Track& a, const Track& b) {
        return std::tie(a.process, a.kind, a.tid, a.device) <
               std::tie(b.process, b.kind, b.tid, b.device);
      });
  ForEachTable(trace, [&](Table, EventColumns& table) {
    CancelPoint();
    for (TrackId& track : table.track) track = TrackId{place[Index(track)]};
  });
}

void OrderReferredTo(Trace& trace) {
  OrderByFirst(trace.device_ops.launch_config, kNoLaunchConfig, trace.launch_configs);
  OrderByFirst(trace.device_ops.collective, kNoCollective, trace.collectives);
  OrderByFirst(trace.instants.allocation, kNoAllocation, trace.allocations);
}

// Rows without the number stand behind those that have it.
int RowOrder::CompareNesting(ArgsId a, ArgsId b) const {
  for (const StringId key : nesting_keys_) {
    if (key == kEmptyString) continue;
    const auto number = [&](ArgsId args) {
      const std::optional<ArgValue> value = trace_.args.Find(args, key);
      return value && value->type == ArgValue::Type::kInt ? value->integer : INT64_MAX;
    };
    if (const int order = Compare(number(a), number(b)); order != 0) return order;
  }
  return 0;
}

int RowOrder::CompareArgs(ArgsId a, ArgsId b) const {
  if (a == b) return 0;
  using Key = std::tuple<std::string_view, ArgValue::Type, std::string_view, int64_t, double>;
  const auto keys = [&](ArgsId args) {
    std::vector<Key> list;
    trace_.args.ForEach(args, [&](const Arg& arg) {
      list.emplace_back(trace_.Text(arg.key), arg.value.type, trace_.Text(arg.value.text),
                        arg.value.integer, arg.value.real);
    });
    return list;
  };
  const std::vector<Key> left = keys(a);
  const std::vector<Key> right = keys(b);
  return left < right ? -1 : right < left ? 1 : 0;
}

}  // namespace trainprof
