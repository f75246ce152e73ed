#include "trace/recording/read/host_series.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "trace/base/utf8.h"

namespace trainprof::recording {
namespace {

constexpr std::string_view kCategory = "host";
constexpr char kCoresFamily[] = "Core busy %";
// CPU times grow in steps of a hundredth of a second: over less than this they say nothing.
constexpr int64_t kLeastForTicksNs = 50'000'000;
// Counters of 32 bits (a disk's busy milliseconds) begin again at 0.
constexpr uint64_t kWrap = uint64_t{1} << 32;

// The metrics of the family that `metric` belongs to, as a part of HostMetrics(); none for kCores
// and for metrics of a later version.
std::span<const HostMetric> FamilyAround(HostEntityKind kind, uint32_t metric) {
  const std::span<const HostMetric> all = HostMetrics();
  const auto same = [&](const HostMetric& m) { return m.kind == kind && m.id == metric; };
  const auto found = std::find_if(all.begin(), all.end(), same);
  if (found == all.end()) return {};
  const std::string_view family = found->family;
  auto first = found;
  while (first != all.begin() && (first - 1)->kind == kind && (first - 1)->family == family) {
    --first;
  }
  auto last = found;
  while (last != all.end() && last->kind == kind && last->family == family) ++last;
  return {first, last};
}

// What a family's name says in place of "{}".
std::string NameOf(std::string_view family, const HostEntity& entity) {
  std::string name(family);
  const size_t place = name.find("{}");
  if (place == std::string::npos) return name;
  bool repaired = false;
  const std::string which = entity.kind == HostEntityKind::kGpu
                                ? std::to_string(entity.number)
                                : RepairUtf8(entity.text, &repaired);
  return name.replace(place, 2, which);
}

// What one unit of the metric is in that of its family.
double ScaleOf(HostUnit unit) {
  switch (unit) {
    case HostUnit::kThousandths:
    case HostUnit::kKilobytesPerSec:
      return 1e-3;
    case HostUnit::kMebibytes:
      return 1.0 / (1 << 20);
    default:
      return 1;
  }
}

ArgValue Number(double value) {
  const double rounded = std::round(value * 1000) / 1000;
  return {.type = ArgValue::Type::kDouble, .real = rounded};
}

ArgValue Integer(uint64_t value) {
  return {.type = ArgValue::Type::kInt, .integer = static_cast<int64_t>(value)};
}

}  // namespace

int64_t FamiliesAmong(HostEntityKind kind, std::span<const HostSink::Value> values) {
  if (kind == HostEntityKind::kCores) return values.empty() ? 0 : 1;
  int64_t families = 0;
  const char* last = nullptr;
  for (const HostSink::Value& value : values) {
    const std::span<const HostMetric> family = FamilyAround(kind, value.metric);
    if (family.empty() || family.front().family == last) continue;
    last = family.front().family;
    ++families;
  }
  return families;
}

EntitySeries::EntitySeries(const HostEntity& entity, const HostHeader& header, TrackId track,
                           int64_t stride, int64_t base_ns, TraceBuilder& builder)
    : entity_(entity),
      ticks_per_second_(std::max(header.ticks_per_second, 1u)),
      cores_(std::max(header.cores, 1u)),
      track_(track),
      stride_(stride),
      base_ns_(base_ns),
      builder_(&builder) {}

void EntitySeries::AddFamily(uint32_t metric) {
  Family& family = families_.emplace_back();
  if (entity_.kind == HostEntityKind::kCores) {
    family.name = builder_->Intern(kCoresFamily);
    family.is_total = true;
    return;
  }
  const std::span<const HostMetric> metrics = FamilyAround(entity_.kind, metric);
  if (metrics.empty()) {
    family.first_metric = metric;  // of a later version: known, and empty
    return;
  }
  family.name = builder_->Intern(NameOf(metrics.front().family, entity_));
  family.is_total = IsTotal(metrics.front().unit);
  family.first_metric = metrics.front().id;
  for (const HostMetric& each : metrics) {
    family.series.push_back({builder_->Intern(each.series), each.unit});
  }
}

size_t EntitySeries::FamilyOf(uint32_t metric) {
  if (entity_.kind == HostEntityKind::kCores && !families_.empty()) return 0;
  for (size_t i = 0; i < families_.size(); ++i) {
    const Family& family = families_[i];
    const size_t size = std::max<size_t>(family.series.size(), 1);
    if (metric >= family.first_metric && metric - family.first_metric < size) return i;
  }
  AddFamily(metric);
  return families_.size() - 1;
}

void EntitySeries::Add(int64_t monotonic_ns, std::span<const HostSink::Value> values) {
  while (!values.empty()) {
    const size_t family = FamilyOf(values.front().metric);
    size_t count = 1;
    while (count < values.size() && FamilyOf(values[count].metric) == family) ++count;
    AddSample(families_[family], monotonic_ns, values.first(count));
    values = values.subspan(count);
  }
}

double EntitySeries::RateOf(const Series& series, uint64_t raw, int64_t duration_ns) const {
  const double seconds = static_cast<double>(duration_ns) / 1e9;
  const double rate = static_cast<double>(raw - series.raw) / seconds;
  switch (series.unit) {
    case HostUnit::kTicksOfCore:
      return 100 * rate / ticks_per_second_;
    case HostUnit::kTicksOfMachine:
      return 100 * rate / ticks_per_second_ / cores_;
    case HostUnit::kMicroseconds:
      return 100 * rate / 1e6;
    case HostUnit::kMilliseconds:
      return 100 * rate / 1e3;
    case HostUnit::kBytes:
      return rate / 1e6;
    default:
      return rate;
  }
}

void EntitySeries::AppendValue(const Series& series, uint64_t raw) {
  if (series.unit == HostUnit::kThrottleReasons) {
    for (const ThrottleReason& reason : ThrottleReasons()) {
      args_.push_back({builder_->Intern(reason.name), Integer((raw & reason.bit) != 0)});
    }
  } else if (series.unit == HostUnit::kValue) {
    args_.push_back({series.key, Integer(raw)});
  } else {
    args_.push_back({series.key, Number(static_cast<double>(raw) * ScaleOf(series.unit))});
  }
}

int64_t EntitySeries::LeastDuration(const Family& family) {
  if (family.series.empty()) return 1;
  const HostUnit unit = family.series.front().unit;
  const bool ticks = unit == HostUnit::kTicksOfCore || unit == HostUnit::kTicksOfMachine;
  return ticks ? kLeastForTicksNs : 1;
}

void EntitySeries::AddSample(Family& family, int64_t monotonic_ns,
                             std::span<const HostSink::Value> values) {
  if (family.observations++ % stride_ != 0) return;
  const int64_t duration_ns = monotonic_ns - family.last_ns;
  if (family.observations > 1 && duration_ns < LeastDuration(family)) return;
  args_.clear();
  for (const HostSink::Value& value : values) {
    const size_t index = value.metric - family.first_metric;
    if (entity_.kind == HostEntityKind::kCores) {
      while (family.series.size() <= index) {
        const std::string core = "core " + std::to_string(family.series.size());
        family.series.push_back({builder_->Intern(core), HostUnit::kTicksOfCore});
      }
    }
    if (index >= family.series.size()) continue;
    Series& series = family.series[index];
    uint64_t raw = value.value;
    if (!family.is_total) {
      AppendValue(series, raw);
    } else if (series.seen) {
      const bool wrapped = raw < series.raw && series.raw < kWrap && series.raw > kWrap / 2;
      if (wrapped) raw += kWrap;
      // A total that shrinks was set back: what passed meanwhile is not known.
      if (raw >= series.raw) {
        args_.push_back({series.key, Number(RateOf(series, raw, duration_ns))});
      }
    }
    series.seen = true;
    series.raw = value.value;
  }
  if (!args_.empty()) Show(family, family.is_total ? family.last_ns : monotonic_ns);
  family.last_ns = monotonic_ns;
}

void EntitySeries::Show(Family& family, int64_t monotonic_ns) {
  if (args_ == family.shown) return;
  family.shown = args_;
  AddRow(family, monotonic_ns);
}

void EntitySeries::AddRow(Family& family, int64_t monotonic_ns) {
  family.row_ns = monotonic_ns;
  const TraceTime time{monotonic_ns - base_ns_};
  builder_->AddCounter({.begin = time,
                        .end = time,
                        .name = family.name,
                        .track = track_,
                        .category = builder_->Intern(kCategory),
                        .args = builder_->AddArgs(family.shown)});
}

void EntitySeries::Finish(bool ended) {
  for (Family& family : families_) {
    if (family.shown.empty()) continue;
    if (ended) {
      for (Arg& arg : family.shown) {
        const bool real = arg.value.type == ArgValue::Type::kDouble;
        arg.value = real ? Number(0) : Integer(0);
      }
    } else if (family.row_ns == family.last_ns) {
      continue;
    }
    AddRow(family, family.last_ns + (family.row_ns == family.last_ns ? 1 : 0));
  }
}

}  // namespace trainprof::recording
