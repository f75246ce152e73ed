// What Python's hooks (trainprof/_recorder.py) record with: plain C functions, called through ctypes
// by threads that hold the GIL. They never fail: where nothing can be recorded they do nothing, and
// what could not be kept is counted as that of NVTX's calls is.
//
// Ranges are written when they have ended, with their begin: whatever a hook misses (an exception,
// an interrupt between two of its lines) costs that one range, and leaves none open. Times are ns of
// CLOCK_MONOTONIC, which Python's own clocks give. Names that the user gives are zero-terminated;
// those of hooks, which come at each step, are handles of TrainprofPlace().
#include <stdio.h>
#include <wchar.h>

#include "collectors/core/lending.h"
#include "collectors/core/own_memory.h"
#include "collectors/core/registry.h"
#include "collectors/core/thread_writer.h"
#include "collectors/python/own_stack.h"
#include "trace/recording/wire/tick_clock.h"

#define TRAINPROF_EXPORT extern "C" [[gnu::visibility("default")]]

namespace trainprof::collectors {
namespace {

constexpr recording::PayloadType kCount = recording::PayloadType::kUint64;

// What is torch's, and not a name that the user gave.
constexpr char kTorchDomain[] = "torch";

// Of Python's garbage collector, which runs in one thread of a process at a time.
constexpr long kGenerations = 3;
struct Collections {
  void* (*item)(void* dictionary, const char* key) = nullptr;
  long (*number)(void* object) = nullptr;
  const Place* places[kGenerations] = {};
  int64_t began_ns = 0;
};
constinit Collections g_collections;
constexpr int64_t kShortestCollectionNs = 20'000;

template <class Record>
void WithWriter(Record record) {
  if (g_runtime.state.get() == nullptr) return;
  ThreadWriter* writer = ThreadWriter::Enter();
  if (writer == nullptr) return;
  record(*writer);
  writer->Leave();
}

}  // namespace
}  // namespace trainprof::collectors

using trainprof::collectors::Attributes;
using trainprof::collectors::DefaultDomain;
using trainprof::collectors::Domain;
using trainprof::collectors::MakeText;
using trainprof::collectors::Place;
using trainprof::collectors::ThreadWriter;
using trainprof::collectors::WithWriter;

// 1: this process records. 0: the other functions do nothing.
TRAINPROF_EXPORT int TrainprofStart() {
  if (!trainprof::collectors::InstallRuntime()) return 0;
  trainprof::collectors::GiveOwnMemory();
  return 1;
}

// The handle of a name and of the text of a stack (FORMAT.md, record 24; may be empty), good for the
// life of the process and of forked children; nullptr where memory runs out.
TRAINPROF_EXPORT const Place* TrainprofPlace(const char* name, const char* stack) {
  return trainprof::collectors::RegisterPlace(MakeText(name), MakeText(stack));
}

// A range of the calling thread that torch's hooks learned of when it had long ended.
TRAINPROF_EXPORT void TrainprofPastRange(const Place* place, int64_t begin_ns, int64_t end_ns) {
  static const Domain* const domain =
      trainprof::collectors::RegisterDomain(MakeText(trainprof::collectors::kTorchDomain));
  if (place == nullptr) return;
  WithWriter([&](ThreadWriter& writer) {
    writer.Range(domain, *place->name, place->stack, begin_ns, end_ns);
  });
}

// One that ends now. When that is.
TRAINPROF_EXPORT int64_t TrainprofRange(const Place* place, int64_t begin_ns) {
  const int64_t now = trainprof::recording::MonotonicNs();
  TrainprofPastRange(place, begin_ns, now);
  return now;
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
    attributes.payload_type = static_cast<uint8_t>(trainprof::collectors::kCount);
    attributes.payload = count;
  }
  WithWriter([&](ThreadWriter& writer) { writer.Mark(DefaultDomain(), name, attributes); });
}

// A fact of the process (wire/facts.h): of one name the last counts.
TRAINPROF_EXPORT void TrainprofFact(const char* key, const char* value) {
  WithWriter([&](ThreadWriter& writer) { writer.Fact(MakeText(key), MakeText(value)); });
}

// A step begins; where ranges name the program's steps this says nothing. 1: recording begins with it.
TRAINPROF_EXPORT int TrainprofStepBegins() {
  bool opens = false;
  WithWriter([&](ThreadWriter& writer) { opens = writer.StepBegins(); });
  return opens ? 1 : 0;
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

// Python's PyDict_GetItemString and PyLong_AsLong, before collections are told of.
TRAINPROF_EXPORT void TrainprofWatchCollections(void* (*item)(void*, const char*),
                                                long (*number)(void*)) {
  trainprof::collectors::g_collections.item = item;
  trainprof::collectors::g_collections.number = number;
}

// As gc.callbacks are called: "start" or "stop", and a dictionary that has the generation.
TRAINPROF_EXPORT void TrainprofCollects(const wchar_t* phase, void* about) {
  trainprof::collectors::Collections& collections = trainprof::collectors::g_collections;
  const int64_t now = trainprof::recording::MonotonicNs();
  if (wcscmp(phase, L"start") == 0) {
    collections.began_ns = now;
    return;
  }
  if (now - collections.began_ns < trainprof::collectors::kShortestCollectionNs) return;
  void* number = collections.item(about, "generation");
  const long generation = number == nullptr ? -1 : collections.number(number);
  if (generation < 0 || generation >= trainprof::collectors::kGenerations) return;
  const Place*& place = collections.places[generation];
  if (place == nullptr) {
    char name[64];
    snprintf(name, sizeof name, "gc.collect (generation %ld)", generation);
    place = TrainprofPlace(name, "");
  }
  TrainprofPastRange(place, collections.began_ns, now);
}
