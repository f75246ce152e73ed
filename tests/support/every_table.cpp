#include "tests/support/every_table.h"

#include "trace/build/trace_builder.h"

namespace trainprof {

Trace TraceWithEveryTable() {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(0);
  int64_t number = 40;
  ForEachTable(builder.trace(), [&]<class T>(Table, T& table) {
    constexpr bool kOnStream = T::kOnStreams || std::is_same_v<T, DeviceOpTable>;
    const TraceTime begin{++number * 1000};
    const Event event{.begin = begin,
                      .end = T::kLasts ? begin + Microseconds(5) : begin,
                      .name = builder.Intern(T::kTitle),
                      .track = kOnStream ? builder.FindOrAddStream(process, 0, 7)
                                         : builder.FindOrAddThread(process, 100)};
    std::apply(
        [&](auto&... own) {
          builder.AddRow(table, event, typename std::decay_t<decltype(own)>::value_type{}...);
        },
        T::OwnColumns(table));
    if constexpr (requires { table.launch_config; }) table.launch_config.back() = kNoLaunchConfig;
    if constexpr (requires { table.collective; }) SetBack(table.collective, kNoCollective);
    if constexpr (requires { table.stack; }) {
      FrameText text;
      text.function = T::kTitle;
      text.file = "train.py";
      text.line = ++number;
      const FrameId frame = builder.AddFrame(text);
      SetBack(table.stack, builder.AddStack(frame, kNoStack));
    }
    if constexpr (requires { table.allocation; }) SetBack(table.allocation, kNoAllocation);
    // No operation is that of the call: its arrow would be a further row.
    if constexpr (requires { table.correlation; }) SetBack(table.correlation, ++number);
    if constexpr (std::is_same_v<T, FlowTable>) table.phase.back() = 's';
    if constexpr (DescribedTable<T>) {
      ForEachNamedColumn(table, [&]<class C>(std::string_view, std::vector<C>& column) {
        if constexpr (std::is_same_v<C, int64_t>) column.back() = ++number;
        if constexpr (NamedValue<C>) column.back() = C{1};
      });
    }
  });
  return std::move(builder).Build();
}

}  // namespace trainprof
