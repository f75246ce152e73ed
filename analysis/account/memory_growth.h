// What processes and their devices held at the end of each step, whether that grows, and which lines
// keep it, where a recording has it (trainprof run --memory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/steps/steps.h"
#include "trace/tables/trace.h"

namespace trainprof {

// "resident", "cuda:0 allocated", "cuda:0 reserved"; of one process.
struct MemorySeries {
  int64_t pid = 0;
  std::string name;
  int64_t peak_bytes = 0;
  int64_t last_bytes = 0;
  int64_t steps = 0;    // whose ends are compared, without warm-up and those of the search
  bool judged = false;  // enough of them to tell growth from noise
  // The median slope; 0 where it is within the noise, or has come to an end.
  double growth_bytes_per_step = 0;
  double noise_bytes = 0;  // how far values lie from that slope

  bool operator==(const MemorySeries&) const = default;
};

// What a line of the user's keeps from each step on.
struct KeptMemory {
  std::string kind;    // "tensor", "graph", "block", "python" (fact::kMemoryKept)
  std::string device;  // "cpu", "cuda:0"; of Python's objects ""
  int64_t bytes_per_step = 0;
  double per_step = 0;   // objects
  double graphs = 0;     // of these with a graph; of a graph: its nodes; a step
  int64_t line = 0;      // 0: only the variable is known
  std::string variable;  // of a graph that grows behind one, else ""
  std::string file;
  int64_t caller_line = 0;  // from where that line was reached; 0: it is a module's own
  std::string caller_file;

  bool operator==(const KeptMemory&) const = default;
};

struct StepMemory {
  std::vector<MemorySeries> series;  // by process and name; empty without --memory
  std::vector<KeptMemory> kept;      // the most bytes first
  Duration cost;                     // of recording, a step
  int64_t searched_steps = 0;        // during which lines were looked for; 0: the run was too short
  Duration search;                   // how much longer these took
  std::string missing;               // what could not be seen, in words

  bool operator==(const StepMemory&) const = default;
};

// Empty for any trace but a recording with memory. O(counters * log), at most some 10^5 pairs more.
StepMemory MemoryOf(const Trace& trace, const Steps& steps);

// The place of a kept line, "model.py:31 (from train.py:12)", or its variable's file.
std::string PlaceOf(const KeptMemory& kept);

}  // namespace trainprof
