#include "analysis/tables/facts.h"

#include <fmt/format.h>

#include "analysis/host/call_sites.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/formats/chrome/stack_text.h"

namespace trainprof {
namespace {

std::string ValueText(const StringTable& texts, const ArgValue& value) {
  switch (value.type) {
    case ArgValue::Type::kString:
    case ArgValue::Type::kJson:
      return std::string(texts.View(value.text));
    case ArgValue::Type::kInt:
      return fmt::format("{}", value.integer);
    case ArgValue::Type::kDouble:
      return fmt::format("{:.6g}", value.real);
    case ArgValue::Type::kTrue:
      return "true";
    case ArgValue::Type::kFalse:
      return "false";
    case ArgValue::Type::kNull:
      break;
  }
  return "null";
}

// "" where there is none.
std::string ArgText(const Trace& trace, ArgsId args, std::string_view key) {
  const StringId id = trace.strings.Find(key);
  if (id == kEmptyString) return {};
  const std::optional<ArgValue> value = trace.args.Find(args, id);
  return value ? ValueText(trace.strings, *value) : std::string();
}

// "[64, 1, 1]" -> "64 x 1 x 1", however a file breaks its lines; other texts as they are.
std::string ShapeText(std::string text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return text;
  std::string shape;
  for (char c : text.substr(1, text.size() - 2)) {
    if (c == ',') shape += " x ";
    if (c != ',' && kBlanks.find(c) == std::string_view::npos) shape += c;
  }
  return shape;
}

std::string_view DirectionText(CopyDirection direction) {
  switch (direction) {
    case CopyDirection::kHostToDevice:
      return "host to device";
    case CopyDirection::kDeviceToHost:
      return "device to host";
    case CopyDirection::kDeviceToDevice:
      return "within the device";
    case CopyDirection::kPeer:
      return "device to device";
    case CopyDirection::kHostToHost:
      return "host to host";
    case CopyDirection::kUnknown:
      break;
  }
  return {};
}

class FactList {
 public:
  FactList(const Trace& trace, ArgsId args) : trace_(trace), args_(args) {}

  void Add(std::string_view label, std::string value) {
    if (!value.empty()) facts_.push_back({std::string(label), std::move(value)});
  }
  void AddArg(std::string_view label, std::string_view key, std::string_view unit = {}) {
    std::string text = ArgText(trace_, args_, key);
    if (!text.empty()) text += unit;
    Add(label, std::move(text));
  }
  void AddKnown(std::string_view label, int64_t value, std::string_view unit) {
    if (value != LaunchConfig::kUnknown) Add(label, fmt::format("{}{}", value, unit));
  }
  void AddShape(std::string_view label, std::string_view key) {
    Add(label, ShapeText(ArgText(trace_, args_, key)));
  }
  std::vector<Fact> Take() { return std::move(facts_); }

 private:
  const Trace& trace_;
  const ArgsId args_;
  std::vector<Fact> facts_;
};

std::string ShapeText(const LaunchConfig::Shape& shape) {
  if (shape == LaunchConfig::kNoShape) return {};
  return fmt::format("{} x {} x {}", shape[0], shape[1], shape[2]);
}

void AddKernel(const LaunchConfig& config, FactList& facts) {
  const auto add_percent = [&](double percent, std::string_view unit) {
    facts.Add("occupancy", fmt::format("{:.6g}{}", percent, unit));
  };
  facts.Add("grid", ShapeText(config.grid));
  facts.Add("block", ShapeText(config.block));
  facts.Add("cluster", ShapeText(config.cluster));
  facts.AddKnown("registers", config.registers_per_thread, " per thread");
  facts.AddKnown("shared memory", config.shared_bytes, " B per block");
  facts.AddKnown("local memory", config.local_bytes_per_thread, " B per thread");
  if (config.theoretical_occupancy_percent >= 0) {
    add_percent(config.theoretical_occupancy_percent, " % (theoretical)");
  }
  // Kineto writes 0 where it does not know.
  if (config.estimated_occupancy_percent > 0) {
    add_percent(config.estimated_occupancy_percent, " % (estimated)");
  }
}

void AddCopy(const Trace& trace, size_t i, FactList& facts) {
  const DeviceOpTable& ops = trace.device_ops;
  facts.Add("direction", std::string(DirectionText(ops.direction[i])));
  if (ops.Uses(i, MemoryKind::kPageable)) facts.Add("host memory", "pageable");
  if (ops.bytes[i] <= 0) return;
  facts.Add("bytes", fmt::format("{}", ops.bytes[i]));
  const Duration length = ops.end(i) - ops.begin[i];
  if (length.ns > 0) {  // bytes a nanosecond are GB/s
    facts.Add("rate", fmt::format("{:.2f} GB/s", static_cast<double>(ops.bytes[i]) /
                                                     static_cast<double>(length.ns)));
  }
}

void AddAllocation(const Allocation& allocation, FactList& facts) {
  const auto add = [&](std::string_view label, int64_t bytes, std::string_view unit) {
    if (bytes != Allocation::kUnknown) facts.Add(label, fmt::format("{}{}", bytes, unit));
  };
  add("bytes", allocation.bytes, "");
  add("allocated", allocation.Total(MemoryTotal::kAllocated), " B");
  add("reserved", allocation.Total(MemoryTotal::kReserved), " B");
}

void AddColumns(const Trace& trace, const DescribedTable auto& table, size_t i, FactList& facts) {
  ForEachNamedColumn(table, [&]<class C>(std::string_view name, const std::vector<C>& column) {
    if constexpr (std::is_same_v<C, StringId>) {
      facts.Add("recorded as", std::string(trace.Text(column[i])));
    } else if constexpr (NamedValue<C>) {
      if (column[i] != C{}) facts.Add(name, std::string(NameOf(column[i])));
    } else if constexpr (std::is_same_v<C, int64_t>) {
      if (column[i] != kNoCorrelation) facts.Add(name, fmt::format("{}", column[i]));
    }
  });
}

void AddFrames(const Trace& trace, StackId stack, std::vector<StackFrame>& frames) {
  trace.stacks.ForEachFrame(stack, [&](const CallFrame& frame) {
    frames.push_back({FrameSpelled(trace, frame), frame.is_user});
    return frames.size() < kMostFrames;
  });
}

// The ranges from `row` outwards, until one of them has recorded a stack.
void AddRanges(const Trace& trace, Row row, std::vector<StackFrame>& frames) {
  for (; row != kNoRow && frames.size() < kMostFrames; row = trace.ranges.parent[Index(row)]) {
    const size_t i = Index(row);
    const StackId stack = trace.ranges.stack[i];
    const bool is_frame = trace.ranges.kind[i] == RangeKind::kPythonFunction && stack != kNoStack;
    const CallFrame own =
        is_frame ? trace.stacks.frame(trace.stacks.innermost(stack)) : CallFrame();
    frames.push_back({std::string(trace.Text(trace.ranges.name[i])), own.is_user && own.HasLine()});
    if (!is_frame && stack != kNoStack) return AddFrames(trace, stack, frames);
  }
}

}  // namespace

std::vector<Fact> FactsOf(const Trace& trace, Table table, Row row) {
  const EventColumns* const columns = ColumnsOf(trace, table);
  if (columns == nullptr) return {};
  const size_t i = Index(row);
  FactList facts(trace, columns->args[i]);
  if (table == Table::kDeviceOps) {
    const LaunchConfig* const config = trace.ConfigOf(row);
    if (trace.device_ops.kind[i] != DeviceOpKind::kKernel) {
      AddCopy(trace, i, facts);
    } else if (config != nullptr) {
      AddKernel(*config, facts);
    }
  }
  if (table == Table::kRanges) {
    facts.Add("recorded as", std::string(trace.Text(trace.ranges.category[i])));
    facts.AddShape("shapes", "Input Dims");
  }
  if (table == Table::kInstants) {
    if (const Allocation* const allocation = trace.AllocationOf(row)) {
      AddAllocation(*allocation, facts);
    }
  }
  ForEachTable(trace, [&]<class T>(Table each, const T& rows) {
    if constexpr (DescribedTable<T>) {
      if (each == table) AddColumns(trace, rows, i, facts);
    }
  });
  return facts.Take();
}

std::vector<Fact> ArgumentsOf(const Trace& trace, Table table, Row row) {
  std::vector<Fact> arguments;
  if (ColumnsOf(trace, table) == nullptr) return arguments;
  StringTable spelled;
  std::vector<Arg> args;
  const StringTable& texts = SpellArguments(trace, table, row, spelled, args);
  for (const Arg& arg : args) {
    const std::string_view key = texts.View(arg.key);
    if (key != kCallStackKey) arguments.push_back({std::string(key), ValueText(texts, arg.value)});
  }
  return arguments;
}

std::vector<StackFrame> StackOf(const Trace& trace, Table table, Row row) {
  std::vector<StackFrame> frames;
  if (table == Table::kDeviceOps) {
    row = trace.device_ops.launch[Index(row)];
    table = Table::kApi;
    if (row == kNoRow) return frames;
  }
  if (table == Table::kRanges) {
    const size_t i = Index(row);
    if (trace.ranges.kind[i] != RangeKind::kPythonFunction) {
      AddFrames(trace, trace.ranges.stack[i], frames);
    }
    if (frames.empty()) AddRanges(trace, trace.ranges.parent[i], frames);
    return frames;
  }
  ForEachEventTable(trace, [&](Table each, const auto& rows) {
    if constexpr (requires { rows.stack; }) {
      if (each != table) return;
      const size_t i = Index(row);
      AddFrames(trace, rows.stack[i], frames);
      if (!frames.empty()) return;
      AddRanges(trace, InnermostRange(trace.ranges, rows.track[i], rows.begin[i]), frames);
    }
  });
  return frames;
}

}  // namespace trainprof
