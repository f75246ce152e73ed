#include "trace/formats/chrome/kineto_words.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "trace/base/names.h"

namespace trainprof {
namespace {

constexpr double kWarpThreads = 32;

// The arguments that have columns, in the order in which they are interned.
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
  kOperation,
  kCommunicator,
  kMembers,
  kSequence,
  kSyncKind,
  kWaitedStream,
  kWaitedDevice,  // not Kineto's
  kWaitedRecord,
  kWaitedEvent,
  kWaitedThread,    // not Kineto's
  kTotalAllocated,  // in the order of MemoryTotal
  kTotalReserved,
  kTotalHost,
  kBytes,
  kAddress,
  kDeviceId,
  kDeviceType,
  kMemoryKind,
  kPoolBytes,
  kPoolUsedBytes,
  kSource,
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
                                               "graph node id",
                                               "Collective name",
                                               "Process Group Name",
                                               "Process Group Ranks",
                                               "Seq",
                                               "cuda_sync_kind",
                                               "wait_on_stream",
                                               "wait_on_device",
                                               "wait_on_cuda_event_record_corr_id",
                                               "wait_on_cuda_event_id",
                                               "wait_on_host_thread",
                                               "Total Allocated",
                                               "Total Reserved",
                                               "Total Host",
                                               "Bytes",
                                               "Addr",
                                               "Device Id",
                                               "Device Type",
                                               "kind",
                                               "pool bytes",
                                               "pool used bytes",
                                               "source"};
constexpr std::string_view kAllocationName = "[memory]";
constexpr int64_t kNone = -1;  // no stream, no record, no event

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

SyncKind SyncKindIn(std::string_view text) {
  for (size_t i = 0; i < std::size(kSyncKindNames); ++i) {
    if (kSyncKindNames[i] == text) return SyncKind{static_cast<uint8_t>(i)};
  }
  return SyncKind::kUnknown;
}

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

constexpr LaunchConfig::Shape kUnparsedShape{UINT32_MAX, UINT32_MAX, UINT32_MAX};

// "[64, 1, 1]", however the file breaks its lines.
LaunchConfig::Shape ParseShape(std::string_view text) {
  LaunchConfig::Shape shape{};
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

int64_t WholeOf(const ArgValue& value, int64_t most = std::numeric_limits<int64_t>::max()) {
  const bool known =
      value.type == ArgValue::Type::kInt && value.integer >= 0 && value.integer <= most;
  return known ? value.integer : LaunchConfig::kUnknown;
}

// Of any sign, or `unknown`.
int64_t IntegerOf(const ArgValue& value, int64_t unknown) {
  return value.type == ArgValue::Type::kInt ? value.integer : unknown;
}

// The same of a number that was written with a fraction.
int64_t RoundedOf(const ArgValue& value, int64_t unknown) {
  constexpr double kMost = 1e18;  // and the least: what lies beyond is no number of bytes
  const bool rounds = value.type == ArgValue::Type::kDouble && std::abs(value.real) < kMost;
  return rounds ? std::llround(value.real) : IntegerOf(value, unknown);
}

StringId TextOf(const ArgValue& value) {
  const bool is_text = value.type == ArgValue::Type::kString || value.type == ArgValue::Type::kJson;
  return is_text ? value.text : kEmptyString;
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
  void Add(std::string_view key, std::string_view text) {
    args_.push_back(
        {strings_.Intern(key), {.type = ArgValue::Type::kString, .text = strings_.Intern(text)}});
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
  const Duration length = ops.end(row) - ops.begin[row];
  if (ops.kind[row] == DeviceOpKind::kCopy && length.ns > 0) {  // bytes a nanosecond are GB/s
    args.Add("memory bandwidth (GB/s)",
             static_cast<double>(ops.bytes[row]) / static_cast<double>(length.ns));
  }
}

void SpellLaunch(const Trace& trace, const LaunchConfig& config, size_t row, Spelling& args) {
  const DeviceOpTable& ops = trace.device_ops;
  const Track& stream = trace.tracks[Index(ops.track[row])];
  const Device* const device =
      stream.device == kNoDevice ? nullptr : &trace.devices[Index(stream.device)];
  if (device != nullptr) args.Add("device", device->id);
  args.AddKnown(kKeys[kContext], config.context);
  args.Add("stream", stream.tid);
  if (ops.kind[row] != DeviceOpKind::kKernel) {
    SpellBytes(ops, row, args);
  } else if (config.registers_per_thread != LaunchConfig::kUnknown) {
    SpellKernel(config, device, args);
  }
  args.AddKnown(kKeys[kGraph], config.graph);
  args.AddKnown(kKeys[kGraphNode], config.graph_node);
}

void SpellCollective(const Trace& trace, const Collective& call, Spelling& args) {
  const std::pair<Key, StringId> texts[] = {
      {kOperation, call.operation}, {kCommunicator, call.communicator}, {kMembers, call.members}};
  for (const auto& [key, text] : texts) {
    if (text != kEmptyString) args.Add(kKeys[key], trace.Text(text));
  }
  if (call.sequence != Collective::kUnknown) args.Add(kKeys[kSequence], call.sequence);
}

void SpellSync(const Trace& trace, size_t row, Spelling& args) {
  const SyncTable& syncs = trace.syncs;
  const auto or_none = [](int64_t number) { return number == kNoCorrelation ? kNone : number; };
  const SyncKind kind = syncs.kind[row];
  args.Add(kKeys[kSyncKind], Name(kind));
  if (kind == SyncKind::kEvent || kind == SyncKind::kStreamWaits) {
    args.Add(kKeys[kWaitedStream], or_none(syncs.waited_stream[row]));
    args.AddKnown(kKeys[kWaitedDevice], or_none(syncs.waited_device[row]));
    args.Add(kKeys[kWaitedRecord], or_none(syncs.waited_record[row]));
    args.Add(kKeys[kWaitedEvent], or_none(syncs.waited_event[row]));
  }
  args.AddKnown(kKeys[kWaitedThread], or_none(syncs.waited_thread[row]));
  const Track& stream = trace.tracks[Index(syncs.track[row])];
  args.Add("stream", stream.tid);
  if (stream.device != kNoDevice) args.Add("device", trace.devices[Index(stream.device)].id);
  args.AddKnown(kKeys[kContext], or_none(syncs.context[row]));
}

void SpellAllocation(const Trace& trace, const Allocation& allocation, Spelling& args) {
  const auto add_known = [&](Key key, int64_t value) {
    if (value != Allocation::kUnknown) args.Add(kKeys[key], value);
  };
  const bool on_host = allocation.device_id < 0;
  for (size_t i = 0; i < kMemoryTotals; ++i) {
    add_known(static_cast<Key>(kTotalAllocated + i), allocation.totals[i]);
  }
  add_known(kBytes, allocation.bytes);
  add_known(kAddress, allocation.address);
  args.Add(kKeys[kDeviceId], allocation.device_id);
  args.Add(kKeys[kDeviceType], int64_t{on_host ? 0 : 1});
  args.Add(kKeys[kMemoryKind], Name(allocation.kind));
  add_known(kPoolBytes, allocation.pool_bytes);
  add_known(kPoolUsedBytes, allocation.pool_used_bytes);
  if (allocation.source != kEmptyString) args.Add(kKeys[kSource], trace.Text(allocation.source));
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

KinetoArguments::KinetoArguments(TraceBuilder& builder)
    : builder_(builder), key_count_(kKeyCount), allocation_name_(builder.Intern(kAllocationName)) {
  for (uint8_t key = 0; key < kKeyCount; ++key) {
    const size_t id = Index(builder.Intern(kKeys[key]));
    if (id >= key_of_.size()) key_of_.resize(id + 1, kKeyCount);
    key_of_[id] = key;
  }
}

// Each text is parsed once: launches repeat their shapes.
LaunchConfig::Shape KinetoArguments::ShapeOf(const ArgValue& value) {
  if (value.type != ArgValue::Type::kJson) return LaunchConfig::kNoShape;
  if (Index(value.text) >= shape_of_.size()) {
    shape_of_.resize(builder_.trace().strings.size(), kUnparsedShape);
  }
  LaunchConfig::Shape& shape = shape_of_[Index(value.text)];
  if (shape == kUnparsedShape) shape = ParseShape(builder_.trace().Text(value.text));
  return shape;
}

void KinetoArguments::ReadLaunch(uint32_t key, const ArgValue& value, LaunchConfig& config) {
  constexpr int64_t kMostRegisters = std::numeric_limits<int32_t>::max();
  switch (key) {
    case kContext:
      config.context = WholeOf(value);
      break;
    case kRegisters:
      config.registers_per_thread = static_cast<int32_t>(WholeOf(value, kMostRegisters));
      break;
    case kShared:
      config.shared_bytes = WholeOf(value);
      break;
    case kGrid:
      config.grid = ShapeOf(value);
      break;
    case kBlock:
      config.block = ShapeOf(value);
      break;
    case kCluster:
      config.cluster = ShapeOf(value);
      break;
    case kLocal:
      config.local_bytes_per_thread = WholeOf(value);
      break;
    case kGraph:
      config.graph = WholeOf(value);
      break;
    case kGraphNode:
      config.graph_node = WholeOf(value);
      break;
    case kTheoreticalOccupancy:
      config.theoretical_occupancy_percent = PercentOf(value);
      break;
    case kEstimatedOccupancy:
      config.estimated_occupancy_percent = PercentOf(value);
      break;
    default:
      break;
  }
}

DeviceOpDetails KinetoArguments::DetailsOf(std::span<const Arg> args) {
  LaunchConfig config;
  Collective call;
  for (const Arg& arg : args) {
    const uint32_t key = KeyOf(arg.key);
    if (key == key_count_) continue;
    if (key < kOperation) ReadLaunch(key, arg.value, config);
    if (key == kOperation) call.operation = TextOf(arg.value);
    if (key == kCommunicator) call.communicator = TextOf(arg.value);
    if (key == kMembers) call.members = TextOf(arg.value);
    if (key == kSequence) call.sequence = IntegerOf(arg.value, Collective::kUnknown);
  }
  DeviceOpDetails details;
  if (config != LaunchConfig{}) details.launch_config = builder_.FindOrAddLaunchConfig(config);
  if (call != Collective{}) details.collective = builder_.AddCollective(call);
  return details;
}

void KinetoArguments::ReadColumns(std::span<const Arg> args, SyncTable& syncs) const {
  const std::pair<Key, std::vector<int64_t>*> numbers[] = {{kContext, &syncs.context},
                                                           {kWaitedEvent, &syncs.waited_event},
                                                           {kWaitedStream, &syncs.waited_stream},
                                                           {kWaitedDevice, &syncs.waited_device},
                                                           {kWaitedRecord, &syncs.waited_record},
                                                           {kWaitedThread, &syncs.waited_thread}};
  for (const auto& [key, column] : numbers) column->back() = kNoCorrelation;
  for (const Arg& arg : args) {
    const uint32_t its_key = KeyOf(arg.key);
    if (its_key == kSyncKind) {
      syncs.kind.back() = SyncKindIn(builder_.trace().Text(TextOf(arg.value)));
    }
    if (arg.value.type != ArgValue::Type::kInt || arg.value.integer == kNoCorrelation) continue;
    for (const auto& [key, column] : numbers) {
      if (key != its_key) continue;
      column->back() = arg.value.integer == kNone ? kNoCorrelation : arg.value.integer;
    }
  }
}

AllocationId KinetoArguments::AllocationOf(StringId name, std::span<const Arg> args) {
  if (name != allocation_name_) return kNoAllocation;
  Allocation allocation;
  for (const Arg& arg : args) {
    const uint32_t key = KeyOf(arg.key);
    const int64_t number = IntegerOf(arg.value, Allocation::kUnknown);
    if (key >= kTotalAllocated && key <= kTotalHost) {
      allocation.totals[key - kTotalAllocated] = RoundedOf(arg.value, Allocation::kUnknown);
    }
    if (key == kBytes) allocation.bytes = number;
    if (key == kAddress) allocation.address = number;
    if (key == kDeviceId) allocation.device_id = IntegerOf(arg.value, kNone);
    if (key == kMemoryKind) allocation.kind = KindIn(builder_.trace().Text(TextOf(arg.value)));
    if (key == kPoolBytes) allocation.pool_bytes = number;
    if (key == kPoolUsedBytes) allocation.pool_used_bytes = number;
    if (key == kSource) allocation.source = TextOf(arg.value);
  }
  return allocation == Allocation{} ? kNoAllocation : builder_.AddAllocation(allocation);
}

const StringTable& SpellArguments(const Trace& trace, Table table, Row row, StringTable& strings,
                                  std::vector<Arg>& args) {
  args.clear();
  ArgsId stored = kNoArgs;
  ForEachTable(trace, [&](Table each, const EventColumns& columns) {
    if (each == table) stored = columns.args[Index(row)];
  });
  if (!HasChromeWords(trace) && stored == kNoArgs) {
    Spelling spelled(strings, args);
    if (table == Table::kDeviceOps) {
      const LaunchConfig* const config = trace.ConfigOf(row);
      const Collective* const call = trace.CollectiveOf(row);
      if (config != nullptr) SpellLaunch(trace, *config, Index(row), spelled);
      if (call != nullptr) SpellCollective(trace, *call, spelled);
    } else if (table == Table::kSyncs) {
      SpellSync(trace, Index(row), spelled);
    } else if (table == Table::kInstants && trace.AllocationOf(row) != nullptr) {
      SpellAllocation(trace, *trace.AllocationOf(row), spelled);
    }
    if (!args.empty()) return strings;
  }
  trace.args.Copy(stored, args);
  return trace.strings;
}

}  // namespace trainprof
