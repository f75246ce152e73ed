// Arguments are Python's ints: times in ns of CLOCK_MONOTONIC, 0 where a hook was interrupted before it
// knew when it began; names and places as handles of TrainprofPlace(). Objects (iterators, optimizers) are
// only told apart. Where nothing can be recorded they do nothing; none raises, but for a Ctrl-C that came
// while Python was asked something.
#include "collectors/python/hooks.h"

#include <stdio.h>
#include <string.h>

#include "collectors/python/asking.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;
using Arguments = PyObject* const*;

constinit bool g_steps_are_told = false;
constinit const Place* g_first_name = nullptr;  // of the optimizer that counts steps

// Names of optimizers that stepped last.
struct Optimizer {
  const void* object;
  const Place* name;
};
constinit Optimizer g_optimizers[64] = {};
Optimizer& OptimizerAt(const void* object) {
  const auto address = reinterpret_cast<uintptr_t>(object);
  return g_optimizers[(address >> 4 ^ address >> 12) %
                      (sizeof g_optimizers / sizeof *g_optimizers)];
}

// () -> when it began
PyObject* LoaderAsked(Arguments) {
  int64_t begin = MonotonicNs();
  bool may_be_validation = false;
  bool is_validation = false;
  WithPhases([&](Phases& phases) {
    may_be_validation = phases.MayBeValidation(begin);
    is_validation = phases.thread().trains;
    ++phases.thread().loaders;
  });
  if (!may_be_validation) return Int(begin);
  if (!is_validation) {
    PyObject* const is_on = Ask(kGradIsOn);
    if (is_on == nullptr) return Done(begin);
    is_validation = Python().is_true(is_on) == 0;
    Python().drop(is_on);
  }
  if (is_validation) WithPhases([&](Phases& phases) { begin = phases.ValidationEnded(); });
  return Int(begin);
}

// () -> when it began: its workers start
PyObject* IteratorAsked(Arguments) {
  WithPhases([&](Phases& phases) { ++phases.thread().loaders; });
  return Int(MonotonicNs());
}

// (name, or 0: it failed; iterator; begin; whether a batch came)
PyObject* LoaderReturned(Arguments arguments) {
  const int64_t begin = IntOf(arguments[2]);
  const bool has_batch = IntOf(arguments[3]) != 0;
  const Place* const site = Site(arguments[0]);
  WithPhases([&](Phases& phases) {
    uint32_t& loaders = phases.thread().loaders;
    loaders = begin == 0 || loaders == 0 ? 0 : loaders - 1;
    if (begin != 0 && site != nullptr) phases.LoaderReturned(site, arguments[1], begin, has_batch);
  });
  return Done();
}

// (name, begin)
PyObject* GradientsCleared(Arguments arguments) {
  const Place* const name = PlaceOf(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.GradientsCleared(name, begin); });
  return Int(0);
}

// (name, begin)
PyObject* GradientsHandled(Arguments arguments) {
  const Place* const site = Site(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.GradientsHandled(site, begin); });
  return Done();
}

// (optimizer)
PyObject* StepBegins(Arguments arguments) {
  WithPhases([&](Phases& phases) { phases.StepBegins(arguments[0]); });
  return Int(0);
}

const Place* NameOf(PyObject* optimizer) {
  Optimizer& known = OptimizerAt(optimizer);
  if (known.object == optimizer) return known.name;
  const Place* const name = Handle(Ask(kNameOf, optimizer));
  if (name != nullptr) OptimizerAt(optimizer) = {optimizer, name};
  return name;
}

// (optimizer) -> 1: a step of the training loop has ended
PyObject* StepEnded(Arguments arguments) {
  const Place* const name = NameOf(arguments[0]);
  const Place* site = SiteOf(name);
  if (site == nullptr && name != nullptr) {
    PyObject* const handle = Int(reinterpret_cast<int64_t>(name));
    site = Site(handle);
    Python().drop(handle);
  }
  bool is_step = false;
  bool is_fed = true;
  WithPhases([&](Phases& phases) {
    if (!phases.StepEnded(site, arguments[0])) return;
    is_fed = phases.thread().is_fed;
    is_step = name != nullptr && name == g_first_name && !g_steps_are_told;
    // What began before is left out; this end is where the first recorded step begins.
    if (is_step && phases.RecordingBegins()) phases.Write(site, MonotonicNs());
  });
  if (!is_fed) Tell(kWatchModules);
  if (is_step && AnswerTo(kStepEnded) != nullptr) {
    Tell(kStepEnded);
    WithPhases([](Phases& phases) { phases.BeginsHere(); });
  }
  return Done(is_step ? 1 : 0);
}

// (address of an optimizer): it is gone
PyObject* OptimizerGone(Arguments arguments) {
  const auto* const object = reinterpret_cast<const void*>(IntOf(arguments[0]));
  Optimizer& known = OptimizerAt(object);
  if (known.object == object) known = {};
  return Int(0);
}

// (name of the optimizer that counts steps)
PyObject* StepsAreOf(Arguments arguments) {
  g_first_name = PlaceOf(arguments[0]);
  return Int(0);
}

// (): the next backward pass tells
PyObject* FactsChanged(Arguments) {
  TellAgain();
  return Int(0);
}

// (name): with gradients, in a loop that no loader feeds
PyObject* ModuleCalled(Arguments arguments) {
  const Place* const site = Site(arguments[0]);
  WithPhases([&](Phases& phases) { phases.ModuleCalled(site); });
  return Done();
}

// (name, begin): of something that has no part in a step's phases
PyObject* RangeEnded(Arguments arguments) {
  const Place* const site = Site(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.Write(site, begin); });
  return Done();
}

// (place, begin): of that place
PyObject* PlaceLeft(Arguments arguments) {
  const Place* const place = PlaceOf(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.Write(place, begin); });
  return Int(0);
}

// (name, begin)
PyObject* Paused(Arguments arguments) {
  const Place* const site = Site(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.Paused(site, begin); });
  return Done();
}

// (name, begin)
PyObject* Logged(Arguments arguments) {
  bool has_phases = false;
  WithOldWriter([&](ThreadWriter& writer) { has_phases = Phases(writer).thread().since != 0; });
  if (!has_phases) return Int(0);
  const Place* const site = Site(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.Logged(site, begin); });
  return Done();
}

// (begin) -> 1: a training thread has waited since, outside of a loader
PyObject* HasWaited(Arguments arguments) {
  bool has_waited = false;
  const int64_t begin = IntOf(arguments[0]);
  WithOldWriter([&](ThreadWriter& writer) {
    const ThreadPhases& thread = Phases(writer).thread();
    has_waited = thread.trains && thread.loaders == 0 && MonotonicNs() - begin >= kShortestNs;
  });
  return Int(has_waited ? 1 : 0);
}

// (name, begin): what has waited was a queue's get()
PyObject* QueueGave(Arguments arguments) {
  const Place* const site = Site(arguments[0]);
  const int64_t begin = IntOf(arguments[1]);
  WithPhases([&](Phases& phases) { phases.QueueGave(phases.Write(site, begin)); });
  return Done();
}

// Of Python's garbage collector, which runs in one thread of a process at a time.
constexpr int64_t kGenerations = 3;
constexpr int64_t kShortestCollectionNs = 20'000;
struct Collections {
  const Place* places[kGenerations];
  int64_t began_ns;
};
constinit Collections g_collections = {};

// As gc.callbacks are called: "start" or "stop", and a dictionary that has the generation.
PyObject* Collected(Arguments arguments) {
  const int64_t now = MonotonicNs();
  if (Python().compare(arguments[0], "start") == 0) {
    g_collections.began_ns = now;
    return Int(0);
  }
  const int64_t began = g_collections.began_ns;
  g_collections.began_ns = 0;
  if (began == 0 || now - began < kShortestCollectionNs) return Int(0);
  PyObject* const number = Python().item(arguments[1], "generation");
  const int64_t generation = number == nullptr ? -1 : IntOf(number);
  if (generation < 0 || generation >= kGenerations) return Int(0);
  const Place*& place = g_collections.places[generation];
  if (place == nullptr) {
    char name[64];
    snprintf(name, sizeof name, "gc.collect (generation %d)", static_cast<int>(generation));
    place = RegisterPlace(MakeText(name), MakeText(""));
  }
  WithPhases([&](Phases& phases) { phases.Write(place, began, now); });
  return Int(0);
}

// Calls a hook with as many arguments as it takes.
template <PyObject* (*kHook)(Arguments), ptrdiff_t kCount>
PyObject* Call(PyObject*, Arguments arguments, ptrdiff_t count) {
  return count < kCount ? Int(0) : kHook(arguments);
}

constexpr BuiltIn kHooks[] = {
    {"loader_asked", Call<LoaderAsked, 0>},
    {"iterator_asked", Call<IteratorAsked, 0>},
    {"loader_returned", Call<LoaderReturned, 4>},
    {"gradients_cleared", Call<GradientsCleared, 2>},
    {"gradients_handled", Call<GradientsHandled, 2>},
    {"step_begins", Call<StepBegins, 1>},
    {"step_ended", Call<StepEnded, 1>},
    {"optimizer_gone", Call<OptimizerGone, 1>},
    {"steps_are_of", Call<StepsAreOf, 1>},
    {"facts_changed", Call<FactsChanged, 0>},
    {"module_called", Call<ModuleCalled, 1>},
    {"range_ended", Call<RangeEnded, 2>},
    {"place_left", Call<PlaceLeft, 2>},
    {"paused", Call<Paused, 2>},
    {"logged", Call<Logged, 2>},
    {"has_waited", Call<HasWaited, 1>},
    {"queue_gave", Call<QueueGave, 2>},
    {"collected", Call<Collected, 2>},
};

}  // namespace

void TellSteps() { g_steps_are_told = true; }

}  // namespace trainprof::collectors

// 1: the others may be called. 0: this process has no Python of which hooks can be functions.
TRAINPROF_EXPORT int TrainprofFindHooks() {
  return trainprof::collectors::FindPython() != nullptr ? 1 : 0;
}

// The hook of that name, a new reference to a function of Python; to a number where there is none, since
// ctypes takes no nullptr for an object. Called with the GIL.
TRAINPROF_EXPORT trainprof::collectors::PyObject* TrainprofHook(const char* name) {
  using namespace trainprof::collectors;
  for (const BuiltIn& hook : kHooks) {
    if (strcmp(hook.name, name) == 0) return Python().new_function(&hook, nullptr, nullptr);
  }
  return Int(0);
}
