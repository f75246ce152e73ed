#include "tests/support/every_table.h"

#include "trace/build/trace_builder.h"

namespace trainprof {

Trace TraceWithEveryTable() {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(0);
  int64_t number = 40;
  ForEachTable(builder.trace(), [&]<class T>(Table, T& table) {
    constexpr bool kOnStream = T::kOnStreams || std::is_same_v<T, DeviceOpTable>;
    constexpr bool kLasts = T::kHoldsEvents && !std::is_same_v<T, InstantTable>;
    const TraceTime begin{++number * 1000};
    const Event event{.begin = begin,
                      .end = kLasts ? begin + Microseconds(5) : begin,
                      .name = builder.Intern(T::kTitle),
                      .track = kOnStream ? builder.FindOrAddStream(process, 0, 7)
                                         : builder.FindOrAddThread(process, 100)};
    std::apply(
        [&](auto&... own) {
          builder.AddRow(table, event, typename std::decay_t<decltype(own)>::value_type{}...);
        },
        T::OwnColumns(table));
    if constexpr (requires { table.launch_config; }) table.launch_config.back() = kNoLaunchConfig;
    if constexpr (requires { table.collective; }) table.collective.back() = kNoCollective;
    if constexpr (requires { table.allocation; }) table.allocation.back() = kNoAllocation;
    // No operation is that of the call: its arrow would be a further row.
    if constexpr (requires { table.correlation; }) table.correlation.back() = ++number;
    if constexpr (std::is_same_v<T, FlowTable>) table.phase.back() = 's';
    if constexpr (DescribedTable<T>) {
      ForEachNamedColumn(table, [&]<class C>(std::string_view, std::vector<C>& column) {
        if constexpr (std::is_same_v<C, int64_t>) column.back() = ++number;
      });
    }
  });
  return std::move(builder).Build();
}

}  // namespace trainprof
