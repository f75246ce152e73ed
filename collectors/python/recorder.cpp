// What Python's part (trainprof/_recorder.py) records with: plain C functions, called through ctypes
// by threads that hold the GIL. What comes at each step is in hooks.cpp. They never fail: where nothing
// can be recorded they do nothing, and what could not be kept is counted as that of NVTX's calls is.
//
// Ranges are written when they have ended, with their begin: whatever a hook misses (an exception,
// an interrupt between two of its lines) costs that one range, and leaves none open. Times are ns of
// CLOCK_MONOTONIC, which Python's own clocks give. Names that the user gives are zero-terminated;
// those of hooks, which come at each step, are handles of TrainprofPlace().
#include "collectors/core/lending.h"
#include "collectors/core/own_memory.h"
#include "collectors/core/registry.h"
#include "collectors/python/asking.h"
#include "collectors/python/hooks.h"
#include "collectors/python/name_sites.h"
#include "collectors/python/own_stack.h"
#include "trace/recording/wire/tick_clock.h"

using trainprof::collectors::Attributes;
using trainprof::collectors::DefaultDomain;
using trainprof::collectors::MakeText;
using trainprof::collectors::Place;
using trainprof::collectors::ThreadWriter;
using trainprof::collectors::WithWriter;

// 1: this process records. 0: the other functions do nothing.
TRAINPROF_EXPORT int TrainprofStart() {
  if (!trainprof::collectors::InstallRuntime()) return 0;
  trainprof::collectors::GiveOwnMemory();
  trainprof::collectors::WatchNames();
  return 1;
}

// The handle of a name and of the text of a stack (FORMAT.md, record 24; may be empty), good for the
// life of the process and of forked children; nullptr where memory runs out.
TRAINPROF_EXPORT const Place* TrainprofPlace(const char* name, const char* stack) {
  return trainprof::collectors::RegisterPlace(MakeText(name), MakeText(stack));
}

// A range of the calling thread that torch's hooks learned of when it had long ended.
TRAINPROF_EXPORT void TrainprofPastRange(const Place* place, int64_t begin_ns, int64_t end_ns) {
  if (place == nullptr) return;
  WithWriter([&](ThreadWriter& writer) {
    writer.Range(trainprof::collectors::TorchDomain(), *place->name, place->stack, begin_ns,
                 end_ns);
  });
}

// One that the user named.
TRAINPROF_EXPORT int64_t TrainprofUserRange(const char* name, int64_t begin_ns) {
  const int64_t now = trainprof::recording::MonotonicNs();
  WithWriter([&](ThreadWriter& writer) {
    writer.Range(DefaultDomain(), MakeText(name), nullptr, begin_ns, now);
  });
  return now;
}

// A moment, with a count where it is not 0.
TRAINPROF_EXPORT void TrainprofMark(const char* name, uint64_t count) {
  Attributes attributes;
  if (count != 0) {
    attributes.payload_type = static_cast<uint8_t>(trainprof::recording::PayloadType::kUint64);
    attributes.payload = count;
  }
  WithWriter([&](ThreadWriter& writer) { writer.Mark(DefaultDomain(), name, attributes); });
}

// What the process or a device holds now, in bytes.
TRAINPROF_EXPORT void TrainprofMemory(const Place* place, uint64_t bytes) {
  static const trainprof::collectors::Domain* const domain =
      trainprof::collectors::RegisterDomain(MakeText(trainprof::recording::kMemoryDomain));
  if (place == nullptr) return;
  Attributes attributes;
  attributes.payload_type = static_cast<uint8_t>(trainprof::recording::PayloadType::kUint64);
  attributes.payload = bytes;
  WithWriter([&](ThreadWriter& writer) { writer.Mark(domain, *place->name, attributes); });
}

// A fact of the process (wire/facts.h): of one name the last counts.
TRAINPROF_EXPORT void TrainprofFact(const char* key, const char* value) {
  WithWriter([&](ThreadWriter& writer) { writer.Fact(MakeText(key), MakeText(value)); });
}

// The program says that a step begins; where ranges name its steps this says nothing. Optimizers need not
// be counted from here on.
TRAINPROF_EXPORT void TrainprofStepBegins() {
  trainprof::collectors::TellSteps();
  WithWriter([](ThreadWriter& writer) { writer.StepBegins(); });
}

// From here on calls that block tell where Python made them. The caller's own stack shows whether this
// Python's can be read: its code objects and their lines, innermost first. 0: they cannot.
TRAINPROF_EXPORT int TrainprofReadStacks(int minor, const void* const* codes, const int32_t* lines,
                                         uint32_t count) {
  return trainprof::collectors::StartOwnStacks(minor, codes, lines, count) ? 1 : 0;
}

// Before the interpreter ends.
TRAINPROF_EXPORT void TrainprofReadNoStacks() { trainprof::collectors::StopOwnStacks(); }

// torch.profiler is about to use CUPTI (1), or has done with it (0): the recording of GPU work pauses.
// May wait for some ms, without the GIL. Does nothing where the process uses no CUDA.
TRAINPROF_EXPORT void TrainprofHandOver(int begins) {
  trainprof::collectors::LendCupti(begins != 0);
}

// Code in a folder (in UTF-8, with a slash at its end) is a library's: the user called from elsewhere.
TRAINPROF_EXPORT void TrainprofPassOver(const char* folder) {
  trainprof::collectors::PassOver(MakeText(folder));
}
