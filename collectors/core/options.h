// What the supervisor asked of this process: the environment, copied once when the library is
// injected (the program may change its environment later), and the options parsed.
#pragma once

#include <cstdint>

#include "trace/recording/wire/layout.h"

namespace trainprof::collectors {

struct Options {
  static constexpr uint64_t kNoStep = UINT64_MAX;

  char run_directory[3072];
  char text[256];          // TRAINPROF_OPTIONS
  char memory_socket[64];  // TRAINPROF_MEMORY; "": none
  int rank;                // -1: none of kRankVariables is a number

  bool full;
  bool has_steps;
  uint64_t first_step;  // records [first_step, end_step)
  uint64_t end_step;
  int64_t delay_ns;      // 0: none
  int64_t duration_ns;   // 0: without end
  int64_t pause_ns;      // between samples of GPU detail; 0: as ever
  char capture[128];     // "": record at once
  char buffers[128];     // the folder of CUPTI's buffers; "": chosen (cupti/slot_place.h)
  bool gpu_off;          // no GPU recording ("gpu=off")
  bool whole_graphs;     // a graph launch is one row ("graphs=graph"), else one a node
  bool no_command_line;  // "command=off"
  bool monotonic;  // stamp with CLOCK_MONOTONIC even where the TSC is good ("clock=monotonic")

  bool HasWindow() const { return has_steps || delay_ns > 0 || duration_ns > 0 || capture[0]; }
};

// False without TRAINPROF_DIR, or with one that is too long to use: the library then stays out.
bool ReadEnvironment(Options* options);

// Parses TRAINPROF_OPTIONS' text (layout.h) into `options`; malformed values are ignored.
void ParseOptions(const char* text, Options* options);

}  // namespace trainprof::collectors
