#include "trace/recording/read/device_decoder.h"

#include <fmt/format.h>

#include <algorithm>

#include "trace/base/large_columns.h"
#include "trace/recording/read/cupti_names.h"
#include "trace/recording/wire/facts.h"
#include "trace/symbols/demangle.h"
#include "trace/tables/occupancy.h"

namespace trainprof::recording {
namespace {

constexpr uint32_t kNoStream = UINT32_MAX;  // CUPTI_SYNCHRONIZATION_INVALID_VALUE
constexpr int64_t kKnowsSlices = 130301;    // CUPTI's own version, of 13.3 update 1

}  // namespace

DeviceDecoder::DeviceDecoder(const SegmentInfo& info, const SegmentScan& scan, HostTime base,
                             ProcessId process, CallStacks& stacks, TraceBuilder& builder)
    : info_(info),
      scan_(scan),
      base_(base),
      process_(process),
      stacks_(stacks),
      builder_(builder),
      first_call_(static_cast<uint32_t>(builder.trace().api.size())) {
  for (const auto& [ordinal, device] : scan_.devices) {
    device_of_ordinal_[ordinal] = FindOrAddDevice(device);
  }
  for (const Gap& gap : builder_.trace().gaps) {
    if (gap.process == process_ && gap.kind == GapKind::kDevice) pauses_.push_back(gap.interval);
  }
}

// Processes of one rank may see one device under different ordinals, or different ones under the
// same: the uuid tells.
DeviceId DeviceDecoder::FindOrAddDevice(const ScannedDevice& found) {
  const DeviceFacts& facts = found.facts;
  std::string uuid;
  for (char byte : facts.uuid) uuid += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  if (uuid.find_first_not_of('0') == std::string::npos) uuid.clear();
  const bool slice = (facts.flags & 1) != 0;
  if (slice && CuptiVersion() < kKnowsSlices) {
    uuid.clear();
    builder_.quality().Count(
        "mig_uuid_unknown", QualitySeverity::kInfo, 1,
        "a MIG slice's UUID is wrong in CUPTI before 13.3 update 1: processes of a rank "
        "that use different slices under one number are shown as one GPU");
  }
  const StringId uuid_text = builder_.Intern(uuid);
  std::vector<Device>& devices = builder_.trace().devices;
  int64_t id = facts.ordinal;
  for (uint32_t i = 0; i < devices.size(); ++i) {
    if (!uuid.empty() && devices[i].uuid == uuid_text) return DeviceId{i};
  }
  const auto is_another = [&](const Device& device) {
    return device.id == id && device.uuid != kEmptyString && !uuid.empty();
  };
  while (std::any_of(devices.begin(), devices.end(), is_another)) ++id;
  Device& device = builder_.device(builder_.FindOrAddDevice(id));
  device.name = builder_.Intern(found.name);
  device.uuid = uuid_text;
  device.total_memory_bytes = static_cast<int64_t>(facts.memory_bytes);
  device.compute_major = static_cast<int32_t>(facts.compute_major);
  device.compute_minor = static_cast<int32_t>(facts.compute_minor);
  device.num_sms = static_cast<int32_t>(facts.multiprocessors);
  device.memory_bytes_per_second = static_cast<int64_t>(facts.memory_bytes_per_second);
  device.clock_khz = static_cast<int64_t>(facts.clock_khz);
  device.is_mig_slice = slice;
  return builder_.FindOrAddDevice(id);
}

DeviceId DeviceDecoder::DeviceOf(uint32_t ordinal) {
  const auto it = device_of_ordinal_.find(ordinal);
  if (it != device_of_ordinal_.end()) return it->second;
  return device_of_ordinal_[ordinal] = builder_.FindOrAddDevice(ordinal);
}

TrackId DeviceDecoder::Stream(uint32_t device, uint32_t context, uint32_t stream) {
  const auto [it, is_new] = stream_of_.try_emplace({device, stream}, TrackId{});
  if (!is_new) return it->second;
  const int64_t number = stream == kNoStream ? -1 : int64_t{stream};
  const int64_t id = builder_.device(DeviceOf(device)).id;
  it->second = builder_.FindOrAddStream(process_, id, number);
  Track& track = builder_.track(it->second);
  track.sort_index = number;
  std::string name = number < 0 ? std::string("host waits") : fmt::format("stream {}", number);
  if (const auto found = scan_.streams.find({context, stream}); found != scan_.streams.end()) {
    track.order = StreamOrderOf(found->second.flag);
    track.priority = static_cast<int32_t>(found->second.priority);
    if (track.priority != 0) name += fmt::format(" (priority {})", track.priority);
  }
  track.name = builder_.Intern(name);
  return it->second;
}

// Whether it ends behind a pause that it did not begin behind: CUPTI gives what is under way when
// kinds are switched off the end at which they are switched on again. What began in the pause as well was
// launched in it: it is no loss.
bool DeviceDecoder::SpansAPausesEnd(const DeviceRow& row) {
  const Interval times = {At(row.begin_ns), At(row.end_ns)};
  for (const Interval& pause : pauses_) {
    if (times.begin >= pause.end || times.end < pause.end) continue;
    straddling_ += times.begin < pause.begin ? 1 : 0;
    return true;
  }
  return false;
}

// False: its times are not those of the work.
bool DeviceDecoder::CountDeviceWork(const DeviceRow& row) {
  ++device_rows_;
  answered_.Add(row.correlation);
  if (row.begin_ns <= 0 || row.end_ns <= 0) {
    ++zero_start_;
  } else if (row.end_ns < row.begin_ns) {
    ++reversed_;
  } else if (!SpansAPausesEnd(row)) {
    last_device_ns_ = std::max(last_device_ns_, row.end_ns);
    return true;
  }
  return false;
}

void DeviceDecoder::AddDeviceRow(const DeviceRow& row, const WriterStrings& names) {
  if (row.type == DeviceRowType{}) return CountWiped(1);
  switch (row.type) {
    case DeviceRowType::kCopy:
    case DeviceRowType::kPeerCopy:
      if (CountDeviceWork(row)) AddCopy(row);
      return;
    case DeviceRowType::kMemset:
      if (CountDeviceWork(row)) AddMemset(row);
      return;
    case DeviceRowType::kGraph:
      if (CountDeviceWork(row)) AddGraph(row);
      return;
    default:
      break;
  }
  if (row.type == DeviceRowType::kOverhead) return AddOverhead(row);
  if (row.type == DeviceRowType::kInFlight) return in_flight_.Add(row.correlation);
  ++device_rows_;
  switch (row.type) {
    case DeviceRowType::kMemory: {
      bool is_lost = false;
      memory_.push_back(row);
      memory_.back().name = static_cast<uint32_t>(NameOf(row.name, names, &is_lost));
      if (is_lost) CountLostNames(1);
      return;
    }
    case DeviceRowType::kEvent: {
      const EventRecord record{row.correlation, row.stream, row.device};
      events_[{row.sync.event, row.context}][row.correlation] = record;
      if (row.sync.sync_id != 0) event_of_sync_[row.sync.sync_id] = record;
      if (row.begin_ns > 0) syncs_.push_back(row);
      return;
    }
    case DeviceRowType::kSync:
      if (IsHostFunction(row)) host_functions_.Add(row.correlation);
      syncs_.push_back(row);
      return;
    default:
      builder_.quality().Count("unknown_record", QualitySeverity::kDataLoss, 1,
                               "records of a newer version; skipped");
  }
}

void DeviceDecoder::CountWiped(size_t rows) {
  builder_.quality().Count("wiped_record", QualitySeverity::kDataLoss, static_cast<int64_t>(rows),
                           "rows of zeros, which nobody writes: a part of the file was wiped");
}

StringId DeviceDecoder::NameOf(uint32_t id, const WriterStrings& names, bool* is_lost) {
  bool known = true;
  const StringId name = names.Get(id, &known);
  *is_lost = !known;
  return known ? name : builder_.Intern("(name lost)");
}

void DeviceDecoder::CountLostNames(size_t rows) {
  builder_.quality().Count("lost_name", QualitySeverity::kWarning, static_cast<int64_t>(rows),
                           "events whose name was in a lost chunk");
}

StringId DeviceDecoder::KernelName(StringId mangled) {
  const auto [it, is_new] = demangled_.try_emplace(mangled, mangled);
  if (is_new) it->second = builder_.Intern(Demangled(builder_.trace().Text(mangled)));
  return it->second;
}

void DeviceDecoder::Arg(std::string_view key, int64_t value) {
  args_.push_back({builder_.Intern(key), {.type = ArgValue::Type::kInt, .integer = value}});
}
void DeviceDecoder::Arg(std::string_view key, double value) {
  args_.push_back({builder_.Intern(key), {.type = ArgValue::Type::kDouble, .real = value}});
}
void DeviceDecoder::Arg(std::string_view key, StringId value) {
  args_.push_back({builder_.Intern(key), {.type = ArgValue::Type::kString, .text = value}});
}
ArgsId DeviceDecoder::TakeArgs() {
  const ArgsId id = args_.empty() ? kNoArgs : builder_.AddArgs(args_);
  args_.clear();
  return id;
}

Event DeviceDecoder::EventOf(const DeviceRow& row, StringId name, TrackId track) {
  return {.begin = At(row.begin_ns),
          .end = At(std::max(row.begin_ns, row.end_ns)),
          .name = name,
          .track = track,
          .args = TakeArgs()};
}

void DeviceDecoder::AddDeviceOp(const DeviceRow& row, StringId name, DeviceOpKind kind,
                                CopyDirection direction, int64_t bytes,
                                const DeviceOpDetails& details) {
  builder_.AddDeviceOp(EventOf(row, name, Stream(row.device, row.context, row.stream)), kind,
                       direction, bytes, CorrelationOf(row.correlation), details);
}

double DeviceDecoder::OccupancyOf(const DeviceRow& row) const {
  const auto device = scan_.devices.find(row.device);
  if (device == scan_.devices.end()) return 0;
  const DeviceFacts& facts = device->second.facts;
  const auto& kernel = row.kernel;
  return TheoreticalOccupancy(
      {static_cast<int32_t>(facts.compute_major), static_cast<int32_t>(facts.compute_minor),
       facts.warps_per_multiprocessor, facts.blocks_per_multiprocessor,
       facts.registers_per_multiprocessor, facts.shared_bytes_per_multiprocessor},
      {int64_t{kernel.block[0]} * kernel.block[1] * kernel.block[2], kernel.registers_per_thread,
       int64_t{kernel.static_shared_bytes} + kernel.dynamic_shared_bytes});
}

LaunchConfigId DeviceDecoder::ConfigOf(const DeviceRow& row) {
  LaunchConfig config;
  config.context = row.context;
  if (row.graph_node != 0) config.graph_node = static_cast<int64_t>(row.graph_node);
  return builder_.FindOrAddLaunchConfig(config);
}

LaunchConfigId DeviceDecoder::ConfigOfKernel(const DeviceRow& row) {
  const auto& k = row.kernel;
  LaunchConfig config;
  config.context = row.context;
  config.grid = {k.grid[0], k.grid[1], k.grid[2]};
  config.block = {k.block[0], k.block[1], k.block[2]};
  if (k.cluster[0] > 1 || k.cluster[1] > 1 || k.cluster[2] > 1) {
    config.cluster = {k.cluster[0], k.cluster[1], k.cluster[2]};
  }
  config.registers_per_thread = k.registers_per_thread;
  config.shared_bytes = int64_t{k.static_shared_bytes} + k.dynamic_shared_bytes;
  if (k.local_bytes_per_thread > 0) config.local_bytes_per_thread = k.local_bytes_per_thread;
  if (const double occupancy = OccupancyOf(row); occupancy > 0) {
    config.theoretical_occupancy_percent = 100 * occupancy;
  }
  if (row.graph_node != 0) {
    config.graph = row.graph;
    config.graph_node = static_cast<int64_t>(row.graph_node);
  }
  return builder_.FindOrAddLaunchConfig(config);
}

void DeviceDecoder::AddCopy(const DeviceRow& row) {
  const auto& copy = row.copy;
  const bool is_peer = row.type == DeviceRowType::kPeerCopy;
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(copy.bytes, INT64_MAX));
  if (is_peer || copy.count > 1) AddRareCopyArgs(row, bytes);
  const MemoryKind source = MemoryKindOf(row.source_kind);
  const MemoryKind target = MemoryKindOf(row.target_kind);
  const auto [name, is_new] = copy_names_.try_emplace({row.detail, source, target}, kEmptyString);
  if (is_new) {
    name->second = builder_.Intern(fmt::format("Memcpy {} ({} -> {})", MemcpyKindName(row.detail),
                                               Name(source), Name(target)));
  }
  AddDeviceOp(row, name->second, DeviceOpKind::kCopy,
              is_peer ? CopyDirection::kPeer : DirectionOf(row.detail), bytes,
              {source, target, ConfigOf(row)});
}

// Of copies between devices, and of several in one row: what has no column, and all else with it,
// so that the arguments are whole.
void DeviceDecoder::AddRareCopyArgs(const DeviceRow& row, int64_t bytes) {
  const auto& copy = row.copy;
  Arg("device", builder_.device(DeviceOf(row.device)).id);
  Arg("context", int64_t{row.context});
  Arg("stream", int64_t{row.stream});
  if (row.type == DeviceRowType::kPeerCopy) {
    Arg("fromDevice", builder_.device(DeviceOf(copy.source_device)).id);
    Arg("inDevice", builder_.device(DeviceOf(row.device)).id);
    Arg("toDevice", builder_.device(DeviceOf(copy.target_device)).id);
    Arg("fromContext", int64_t{copy.source_context});
    Arg("inContext", int64_t{row.context});
    Arg("toContext", int64_t{copy.target_context});
  }
  Arg("bytes", bytes);
  if (row.end_ns > row.begin_ns) {
    Arg("memory bandwidth (GB/s)",
        static_cast<double>(bytes) /
            (static_cast<double>(row.end_ns) - static_cast<double>(row.begin_ns)));
  }
  if (copy.count > 1) Arg("copies", static_cast<int64_t>(copy.count));
  if (row.graph_node != 0) Arg("graph node id", static_cast<int64_t>(row.graph_node));
}

void DeviceDecoder::AddMemset(const DeviceRow& row) {
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(row.memset.bytes, INT64_MAX));
  const MemoryKind target = MemoryKindOf(row.source_kind);
  AddDeviceOp(row, builder_.Intern(fmt::format("Memset ({})", Name(target))), DeviceOpKind::kMemset,
              CopyDirection::kUnknown, bytes, {.target = target, .launch_config = ConfigOf(row)});
}

// Its nodes are not recorded one by one: the whole counts as work.
void DeviceDecoder::AddGraph(const DeviceRow& row) {
  LaunchConfig config;
  config.graph = row.graph;
  AddDeviceOp(row, builder_.Intern("CUDA graph"), DeviceOpKind::kKernel, CopyDirection::kUnknown, 0,
              {.launch_config = builder_.FindOrAddLaunchConfig(config)});
}

void DeviceDecoder::AddOverhead(const DeviceRow& row) {
  const bool of_thread = row.overhead.object_kind == kThreadObject;
  const TrackId track = of_thread ? builder_.FindOrAddThread(process_, int64_t{row.overhead.object})
                                  : builder_.FindOrAddThread(process_, -1);
  if (!of_thread) builder_.track(track).name = builder_.Intern("CUPTI");
  builder_.AddRange(EventOf(row, builder_.Intern(OverheadName(row.detail)), track),
                    RangeKind::kOverhead);
}

ArgsId DeviceDecoder::CallArgs(const CallRow& row) {
  Arg("cbid", int64_t{row.cbid});
  if (row.result != 0) Arg("result", int64_t{row.result});
  return TakeArgs();
}

}  // namespace trainprof::recording
