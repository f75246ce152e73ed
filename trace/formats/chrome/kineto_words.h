// What Kineto's names and arguments say of device operations, and how columns are spelled in them.
// Kineto's source is libkineto/src/output_json.cpp and CuptiActivity.cpp; the arguments that it
// does not have ("cluster", "theoretical occupancy %", ...) are ours.
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

// Reads the arguments of device operations into launch configurations.
class KinetoLaunches {
 public:
  // Interns its keys.
  explicit KinetoLaunches(TraceBuilder& builder);

  // What the arguments say of the launch; kNoLaunchConfig where that is nothing. What is not of the
  // expected type is not known, and stays an argument.
  LaunchConfigId Of(std::span<const Arg> args);

 private:
  LaunchConfig::Shape ShapeOf(const ArgValue& value) const;

  TraceBuilder& builder_;
  std::vector<StringId> key_;
};

// The arguments of a device operation. Those of a recording's row that has none of its own are
// spelled from its columns as Kineto would; `strings` then holds their texts.
const StringTable& DeviceOpArgs(const Trace& trace, Row op, StringTable& strings,
                                std::vector<Arg>& args);

}  // namespace trainprof
