#include "trace/formats/chrome/kineto_words.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <string>

#include "trace/base/names.h"

namespace trainprof {
namespace {

constexpr double kWarpThreads = 32;

// The arguments that a LaunchConfig has, in the order in which they are interned.
enum Key : uint32_t {
  kContext,
  kRegisters,
  kShared,
  kGrid,
  kBlock,
  kTheoreticalOccupancy,
  kEstimatedOccupancy,
  kCluster,
  kLocal,
  kGraph,
  kGraphNode,
  kKeyCount,
};
constexpr std::string_view kKeys[kKeyCount] = {"context",
                                               "registers per thread",
                                               "shared memory",
                                               "grid",
                                               "block",
                                               "theoretical occupancy %",
                                               "est. achieved occupancy %",
                                               "cluster",
                                               "local memory per thread",
                                               "graph id",
                                               "graph node id"};

std::string Lowered(std::string_view text) {
  std::string lowered(text);
  for (char& c : lowered) c = names_internal::Lower(c);
  return lowered;
}

// The kind that a text names; of several, the longest name's.
MemoryKind KindIn(std::string_view text) {
  const std::string lowered = Lowered(text);
  MemoryKind found = MemoryKind::kUnknown;
  for (size_t i = 1; i < std::size(kMemoryKindNames); ++i) {
    const MemoryKind kind{static_cast<uint8_t>(i)};
    if (lowered.find(Lowered(Name(kind))) == std::string::npos) continue;
    if (found == MemoryKind::kUnknown || Name(kind).size() > Name(found).size()) found = kind;
  }
  return found;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

int64_t WholeOf(const ArgValue& value, int64_t most = std::numeric_limits<int64_t>::max()) {
  const bool known =
      value.type == ArgValue::Type::kInt && value.integer >= 0 && value.integer <= most;
  return known ? value.integer : LaunchConfig::kUnknown;
}

double PercentOf(const ArgValue& value) {
  if (value.type == ArgValue::Type::kDouble) return value.real;
  return static_cast<double>(WholeOf(value));
}

// Appends arguments to a list.
class Spelling {
 public:
  Spelling(StringTable& strings, std::vector<Arg>& args) : strings_(strings), args_(args) {}

  void Add(std::string_view key, int64_t value) {
    args_.push_back({strings_.Intern(key), {.type = ArgValue::Type::kInt, .integer = value}});
  }
  void AddKnown(std::string_view key, int64_t value) {
    if (value != LaunchConfig::kUnknown) Add(key, value);
  }
  void Add(std::string_view key, double value) {
    args_.push_back({strings_.Intern(key), {.type = ArgValue::Type::kDouble, .real = value}});
  }
  void Add(std::string_view key, const LaunchConfig::Shape& shape) {
    const std::string text = fmt::format("[{},{},{}]", shape[0], shape[1], shape[2]);
    args_.push_back(
        {strings_.Intern(key), {.type = ArgValue::Type::kJson, .text = strings_.Intern(text)}});
  }

 private:
  StringTable& strings_;
  std::vector<Arg>& args_;
};

void SpellKernel(const LaunchConfig& config, const Device* device, Spelling& args) {
  const LaunchConfig::Shape& grid = config.grid;
  const LaunchConfig::Shape& block = config.block;
  args.Add(kKeys[kRegisters], int64_t{config.registers_per_thread});
  args.AddKnown(kKeys[kShared], config.shared_bytes);
  if (device != nullptr && device->num_sms > 0) {
    const double per_sm = double{1} * grid[0] * grid[1] * grid[2] / device->num_sms;
    args.Add("blocks per SM", per_sm);
    args.Add("warps per SM", per_sm * block[0] * block[1] * block[2] / kWarpThreads);
  }
  args.Add(kKeys[kGrid], grid);
  args.Add(kKeys[kBlock], block);
  if (config.theoretical_occupancy_percent > 0) {
    args.Add(kKeys[kTheoreticalOccupancy], config.theoretical_occupancy_percent);
  }
  if (config.cluster != LaunchConfig::kNoShape) args.Add(kKeys[kCluster], config.cluster);
  args.AddKnown(kKeys[kLocal], config.local_bytes_per_thread);
}

void SpellBytes(const DeviceOpTable& ops, size_t row, Spelling& args) {
  args.Add("bytes", ops.bytes[row]);
  const Duration length = ops.end[row] - ops.begin[row];
  if (ops.kind[row] == DeviceOpKind::kCopy && length.ns > 0) {  // bytes a nanosecond are GB/s
    args.Add("memory bandwidth (GB/s)",
             static_cast<double>(ops.bytes[row]) / static_cast<double>(length.ns));
  }
}

}  // namespace

std::pair<MemoryKind, MemoryKind> MemoryKindsOf(std::string_view name) {
  const size_t bracket = name.rfind('(');
  if (bracket != std::string_view::npos) name.remove_prefix(bracket);
  const size_t arrow = name.find("->");
  if (arrow != std::string_view::npos) {
    return {KindIn(name.substr(0, arrow)), KindIn(name.substr(arrow))};
  }
  const bool says_it = bracket != std::string_view::npos;
  return {MemoryKind::kUnknown, says_it ? KindIn(name) : MemoryKind::kUnknown};
}

KinetoLaunches::KinetoLaunches(TraceBuilder& builder) : builder_(builder) {
  key_.reserve(kKeyCount);
  for (const std::string_view key : kKeys) key_.push_back(builder.Intern(key));
}

// "[64, 1, 1]", however the file breaks its lines.
LaunchConfig::Shape KinetoLaunches::ShapeOf(const ArgValue& value) const {
  if (value.type != ArgValue::Type::kJson) return LaunchConfig::kNoShape;
  LaunchConfig::Shape shape{};
  const std::string_view text = builder_.trace().Text(value.text);
  const char* p = text.data();
  const char* const end = p + text.size();
  const auto skip_blanks = [&] {
    while (p < end && IsBlank(*p)) ++p;
  };
  for (size_t i = 0; i < shape.size(); ++i) {
    if (p == end || *p++ != (i == 0 ? '[' : ',')) return LaunchConfig::kNoShape;
    skip_blanks();
    const auto [after, error] = std::from_chars(p, end, shape[i]);
    if (error != std::errc()) return LaunchConfig::kNoShape;
    p = after;
    skip_blanks();
  }
  return p < end && *p == ']' ? shape : LaunchConfig::kNoShape;
}

LaunchConfigId KinetoLaunches::Of(std::span<const Arg> args) {
  constexpr int64_t kMostRegisters = std::numeric_limits<int32_t>::max();
  LaunchConfig config;
  for (const Arg& arg : args) {
    if (arg.key == key_[kContext]) config.context = WholeOf(arg.value);
    if (arg.key == key_[kRegisters]) {
      config.registers_per_thread = static_cast<int32_t>(WholeOf(arg.value, kMostRegisters));
    }
    if (arg.key == key_[kShared]) config.shared_bytes = WholeOf(arg.value);
    if (arg.key == key_[kGrid]) config.grid = ShapeOf(arg.value);
    if (arg.key == key_[kBlock]) config.block = ShapeOf(arg.value);
    if (arg.key == key_[kCluster]) config.cluster = ShapeOf(arg.value);
    if (arg.key == key_[kLocal]) config.local_bytes_per_thread = WholeOf(arg.value);
    if (arg.key == key_[kGraph]) config.graph = WholeOf(arg.value);
    if (arg.key == key_[kGraphNode]) config.graph_node = WholeOf(arg.value);
    if (arg.key == key_[kTheoreticalOccupancy]) {
      config.theoretical_occupancy_percent = PercentOf(arg.value);
    }
    if (arg.key == key_[kEstimatedOccupancy]) {
      config.estimated_occupancy_percent = PercentOf(arg.value);
    }
  }
  return config == LaunchConfig{} ? kNoLaunchConfig : builder_.FindOrAddLaunchConfig(config);
}

const StringTable& DeviceOpArgs(const Trace& trace, Row op, StringTable& strings,
                                std::vector<Arg>& args) {
  args.clear();
  const DeviceOpTable& ops = trace.device_ops;
  const size_t row = Index(op);
  const LaunchConfig* const config = trace.ConfigOf(op);
  if (HasChromeWords(trace) || ops.args[row] != kNoArgs || config == nullptr) {
    trace.args.ForEach(ops.args[row], [&](const Arg& arg) { args.push_back(arg); });
    return trace.strings;
  }
  const Track& stream = trace.tracks[Index(ops.track[row])];
  const Device* const device =
      stream.device == kNoDevice ? nullptr : &trace.devices[Index(stream.device)];
  Spelling spelled(strings, args);
  if (device != nullptr) spelled.Add("device", device->id);
  spelled.AddKnown(kKeys[kContext], config->context);
  spelled.Add("stream", stream.tid);
  if (ops.kind[row] != DeviceOpKind::kKernel) {
    SpellBytes(ops, row, spelled);
  } else if (config->registers_per_thread != LaunchConfig::kUnknown) {
    SpellKernel(*config, device, spelled);
  }
  spelled.AddKnown(kKeys[kGraph], config->graph);
  spelled.AddKnown(kKeys[kGraphNode], config->graph_node);
  return strings;
}

}  // namespace trainprof
