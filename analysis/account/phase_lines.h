// What the phases of the host's account consist of, by the user's source lines, as far as samples of
// stacks tell, or else recorded Python functions: of 149 ms of input wait 85 in __getitem__,
// train.py:25, which slept, and 37 in Image.resize, called from train.py:23.
#pragma once

#include <string>
#include <vector>

#include "analysis/account/account.h"
#include "analysis/account/batch_work.h"

namespace trainprof {

// Time at one line of the user's, in one function that was called from there.
struct LineTime {
  std::string file;  // of the user's innermost frame; "" where no frame is the user's
  int64_t line = 0;  // of functions that were recorded (not sampled): where the function begins
  std::string function;
  // The innermost Python function, where that is not the user's: "Image.resize" in "PIL/Image.py".
  // Where it is, the function without Python code that it calls, in kBuiltInFile: "time.sleep".
  std::string callee;
  std::string callee_file;
  Duration total;
  Duration waiting;   // of `total`: the thread did not run. It slept, waited or read. Of samples
  int64_t count = 0;  // samples, or stretches of time
  Duration gil;       // of `waiting`: other threads held Python's interpreter lock

  bool operator==(const LineTime&) const = default;
};

// "train.py:23 decode > Image.resize, waiting": the user's line, what it had called, and that the
// thread did not run for most of that time. Without a line of the user's, the function and its file.
std::string Title(const LineTime& line);

// Time that making batches took, by what was done for it.
struct WorkTime {
  BatchWork work = BatchWork::kOther;
  Duration total;

  bool operator==(const WorkTime&) const = default;
};

struct PhaseLines {
  HostClass phase = HostClass::kOther;
  Duration total;       // the account's, exactly
  int64_t count = 0;    // samples behind `lines`: shares of few are rough, 1 / sqrt(samples)
  bool sampled = true;  // false: of recorded functions, whose times are exact
  std::vector<LineTime> lines;  // of the stepping thread, largest first; sum to `total`
  // Of input wait: where the run's other threads and processes were in the user's code meanwhile,
  // in parts of `total`. Whoever waits for a queue waits for these.
  std::vector<LineTime> producers;
  // Of input wait: what the producers did, or, where there are none, the thread itself; largest
  // first, sums to `total`. Only of samples: recorded functions are Python's alone.
  std::vector<WorkTime> work;

  bool operator==(const PhaseLines&) const = default;
};

// The thread whose samples tell of the phases: the one that steps, or, where that has none, the one
// that was seen running most. kNoTrack without samples.
TrackId SampledThread(const Trace& trace, const Steps& steps);

// The phases that samples of that thread lie in, in the order of HostClass. A phase's time goes to
// lines by the time that its samples stand for. Without samples: to the innermost recorded Python
// function of each moment on the stepping thread (torch.profiler's with_stack), and what none covers
// to a line without a name. O((samples + functions) log n).
std::vector<PhaseLines> OpenByLine(const Trace& trace, const Steps& steps,
                                   const HostAccount& account);

}  // namespace trainprof
