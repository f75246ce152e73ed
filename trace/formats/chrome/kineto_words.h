// What Kineto's names and arguments say of device operations, waits and allocations, and how
// columns are spelled in them. Kineto's source is libkineto/src/output_json.cpp and
// CuptiActivity.cpp; the arguments that it does not have ("cluster", "theoretical occupancy %",
// ...) are ours.
#pragma once

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/base/string_table.h"
#include "trace/build/trace_builder.h"
#include "trace/tables/args.h"
#include "trace/tables/trace.h"

namespace trainprof {

// "Memcpy HtoD (Pageable -> Device)" -> {kPageable, kDevice}, "Memset (Device)" -> {kUnknown,
// kDevice}. Case is not looked at. ROCm never says it.
std::pair<MemoryKind, MemoryKind> MemoryKindsOf(std::string_view name);

// Reads what has columns out of arguments. What is not of the expected type is not known, and stays
// an argument.
class KinetoArguments {
 public:
  // Interns its keys.
  explicit KinetoArguments(TraceBuilder& builder);

  // What the arguments of a device operation say of its launch, and which collective it is;
  // kNoLaunchConfig and kNoCollective where that is nothing.
  DeviceOpDetails DetailsOf(std::span<const Arg> args);
  // Fills what has no name (trace.h) in the last row.
  void ReadColumns(std::span<const Arg> args, SyncTable& syncs) const;
  // Of a point in time that bears the allocator's name; kNoAllocation for any other.
  AllocationId AllocationOf(StringId name, std::span<const Arg> args);

 private:
  // Which of the keys that have columns; their count for any other.
  uint32_t KeyOf(StringId id) const {
    return Index(id) < key_of_.size() ? key_of_[Index(id)] : key_count_;
  }
  void ReadLaunch(uint32_t key, const ArgValue& value, LaunchConfig& config);
  LaunchConfig::Shape ShapeOf(const ArgValue& value);

  TraceBuilder& builder_;
  std::vector<uint8_t> key_of_;                // by StringId
  std::vector<LaunchConfig::Shape> shape_of_;  // by StringId of its text
  const uint8_t key_count_;
  StringId allocation_name_;
};

// The arguments of an event. Those of a recording's row that has none of its own are spelled from
// its columns as Kineto would. Returns where their texts stand: in `strings` if they were spelled.
const StringTable& SpellArguments(const Trace& trace, Table table, Row row, StringTable& strings,
                                  std::vector<Arg>& args);

}  // namespace trainprof
