// What a trace tells of the program and its machine that advice depends on: which language it is
// written in, how many cores it may use, and how many workers load its batches.
#pragma once

#include <string>

#include "analysis/steps/steps.h"

namespace trainprof {

enum class Language : uint8_t { kUnknown, kPython, kCpp };

// By the names that only Python's torch gives, Python frames, or the recorded command. O(strings).
Language LanguageOf(const Trace& trace);

// `python` and `cpp` in the order that suits the program: its own alone, both where it is not
// known.
std::string InItsLanguage(Language language, const std::string& python, const std::string& cpp);

// Cores that one rank may use, as far as recorded: the machine's, shared among the ranks on it, at
// most what the control group allows. 0: not recorded.
int64_t CoresOfRank(const Trace& trace);

// Processes beside the stepping one that look like a loader's workers, by the machine's samples or
// by the batches that they made.
struct LoaderWorkers {
  int64_t count = 0;
  double cpu_percent = 0;  // of one core each, on average over the window; 0: not sampled
  double batch_ms = 0;     // that one takes to make a batch, on average; 0: not recorded
};
LoaderWorkers FindLoaderWorkers(const Trace& trace, const Steps& steps);

// Cores that the stepping process and the loader's workers used together, on average over the window, by the
// machine's samples; 0: not sampled. O(counters).
double CoresUsed(const Trace& trace, const Steps& steps);

}  // namespace trainprof
