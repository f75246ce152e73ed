// Arguments are Python's ints: times in ns of CLOCK_MONOTONIC, 0 where a hook was interrupted before it
// knew when it began; names and places as handles of TrainprofPlace(). Objects (iterators, optimizers) are
// only told apart. Where nothing can be recorded they do nothing; none raises, but for a Ctrl-C that came
// while Python was asked something.
#include "collectors/python/hooks.h"

#include <stdio.h>
#include <string.h>

#include <utility>

#include "collectors/python/call_site.h"
#include "collectors/python/phases.h"
#include "collectors/python/python_api.h"
#include "collectors/python/with_writer.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;
using Arguments = PyObject* const*;

// What Python is asked or told, by functions of trainprof/_phases.py.
enum Question : uint8_t {
  kSite,          // (name) -> place: where stacks of this Python are not known
  kGradIsOn,      // () -> bool
  kTell,          // (id of an iterator): facts of its loader, and what else there is
  kTellWaits,     // (begin, end) of the last backward pass
  kWatchModules,  // (): the next module that is called begins a forward pass
  kNameOf,        // (optimizer) -> name
  kQuestions,
};
constexpr const char* kQuestionNames[kQuestions] = {"site",       "grad_is_on",    "tell",
                                                    "tell_waits", "watch_modules", "name_of"};

constinit const PythonApi* g_python = nullptr;
constinit PyObject* g_answers[kQuestions];
constinit bool g_steps_are_told = false;
constinit const Place* g_first_name = nullptr;  // of the optimizer that counts steps
constinit uint64_t g_told_version = 1;

// Names of optimizers that stepped last.
struct Optimizer {
  const void* object;
  const Place* name;
};
constinit Optimizer g_optimizers[64];
Optimizer& OptimizerAt(const void* object) {
  const auto address = reinterpret_cast<uintptr_t>(object);
  return g_optimizers[(address >> 4 ^ address >> 12) %
                      (sizeof g_optimizers / sizeof *g_optimizers)];
}

PyObject* Int(int64_t value) { return g_python->new_int(value); }

int64_t IntOf(PyObject* object) {
  const int64_t value = g_python->int_of(object);
  if (value != -1 || g_python->error() == nullptr) return value;
  g_python->clear_error();
  return 0;
}
const Place* PlaceOf(PyObject* object) { return reinterpret_cast<const Place*>(IntOf(object)); }

bool IsInterrupted() { return g_python->error() != nullptr; }

// Asks Python. nullptr: it has no answer, or has failed. A failure that is no mere Exception stays set, and
// nothing is asked any more.
template <class... Objects>
PyObject* Ask(Question question, Objects... arguments) {
  if (g_answers[question] == nullptr || IsInterrupted()) return nullptr;
  PyObject* const answer = g_python->call(g_answers[question], arguments..., nullptr);
  if (answer == nullptr && g_python->error_is(*g_python->any_exception) != 0)
    g_python->clear_error();
  return answer;
}

// What is said to Python, with numbers. False: interrupted.
template <class... Numbers>
bool Tell(Question question, Numbers... numbers) {
  if (g_answers[question] == nullptr || IsInterrupted()) return !IsInterrupted();
  PyObject* const objects[] = {Int(numbers)..., nullptr};
  PyObject* const answer = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return Ask(question, objects[kAt]...);
  }
  (std::make_index_sequence<sizeof...(Numbers)>());
  for (PyObject* object : objects) {
    if (object != nullptr) g_python->drop(object);
  }
  if (answer != nullptr) g_python->drop(answer);
  return !IsInterrupted();
}

// A handle that Python answers with; nullptr: none.
const Place* Handle(PyObject* answer) {
  if (answer == nullptr) return nullptr;
  const Place* const place = PlaceOf(answer);
  g_python->drop(answer);
  return place;
}

const Place* Site(PyObject* name) {
  const Place* const bare = PlaceOf(name);
  if (bare == nullptr) return nullptr;
  if (const Place* const site = SiteOf(bare)) return site;
  const Place* const told = Handle(Ask(kSite, name));
  return told != nullptr ? told : bare;
}

// The answer of a hook: a number, or that it was interrupted.
PyObject* Done(int64_t value = 0) { return IsInterrupted() ? nullptr : Int(value); }

template <class Event>
void WithPhases(Event event) {
  WithWriter([&](ThreadWriter& writer) {
    Phases phases(writer);
    event(phases);
  });
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
    is_validation = g_python->is_true(is_on) == 0;
    g_python->drop(is_on);
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

// () -> when it began
PyObject* BackwardBegins(Arguments) {
  ThreadPhases before = {};
  WithPhases([&](Phases& phases) {
    const ThreadPhases& thread = phases.thread();
    before.batches_from = thread.batches_from;
    before.told = thread.told;
    before.told_version = thread.told_version;
    before.backward_begin = thread.backward_begin;
    before.backward_end = thread.backward_end;
    before.in_backward = thread.in_backward;
  });
  const uint64_t version = g_told_version;
  if (before.told_version != version || before.told != before.batches_from) {
    if (!Tell(kTell, reinterpret_cast<int64_t>(before.batches_from))) return nullptr;
    WithPhases([&](Phases& phases) {
      phases.thread().told = before.batches_from;
      phases.thread().told_version = version;
    });
  }
  if (!before.in_backward && before.backward_end != 0 &&
      !Tell(kTellWaits, before.backward_begin, before.backward_end)) {
    return nullptr;
  }
  int64_t begin = 0;
  WithPhases([&](Phases& phases) { begin = phases.BackwardBegins(); });
  return Int(begin);
}

// (name, begin)
PyObject* BackwardEnded(Arguments arguments) {
  const int64_t begin = IntOf(arguments[1]);
  if (begin == Phases::kNested) return Int(0);
  const Place* const site = begin == 0 ? nullptr : Site(arguments[0]);
  bool is_fed = true;
  WithPhases([&](Phases& phases) {
    if (begin == 0) {
      phases.thread().in_backward = false;
      return;
    }
    phases.BackwardEnded(site, begin);
    is_fed = phases.thread().is_fed;
  });
  if (!is_fed) Tell(kWatchModules);
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
    g_python->drop(handle);
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
  ++g_told_version;
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
  if (g_python->compare(arguments[0], "start") == 0) {
    g_collections.began_ns = now;
    return Int(0);
  }
  const int64_t began = g_collections.began_ns;
  g_collections.began_ns = 0;
  if (began == 0 || now - began < kShortestCollectionNs) return Int(0);
  PyObject* const number = g_python->item(arguments[1], "generation");
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
    {"loader_asked", Call<LoaderAsked, 0>, kFastCall, nullptr},
    {"iterator_asked", Call<IteratorAsked, 0>, kFastCall, nullptr},
    {"loader_returned", Call<LoaderReturned, 4>, kFastCall, nullptr},
    {"backward_begins", Call<BackwardBegins, 0>, kFastCall, nullptr},
    {"backward_ended", Call<BackwardEnded, 2>, kFastCall, nullptr},
    {"gradients_cleared", Call<GradientsCleared, 2>, kFastCall, nullptr},
    {"gradients_handled", Call<GradientsHandled, 2>, kFastCall, nullptr},
    {"step_begins", Call<StepBegins, 1>, kFastCall, nullptr},
    {"step_ended", Call<StepEnded, 1>, kFastCall, nullptr},
    {"optimizer_gone", Call<OptimizerGone, 1>, kFastCall, nullptr},
    {"steps_are_of", Call<StepsAreOf, 1>, kFastCall, nullptr},
    {"facts_changed", Call<FactsChanged, 0>, kFastCall, nullptr},
    {"module_called", Call<ModuleCalled, 1>, kFastCall, nullptr},
    {"range_ended", Call<RangeEnded, 2>, kFastCall, nullptr},
    {"place_left", Call<PlaceLeft, 2>, kFastCall, nullptr},
    {"paused", Call<Paused, 2>, kFastCall, nullptr},
    {"logged", Call<Logged, 2>, kFastCall, nullptr},
    {"has_waited", Call<HasWaited, 1>, kFastCall, nullptr},
    {"queue_gave", Call<QueueGave, 2>, kFastCall, nullptr},
    {"collected", Call<Collected, 2>, kFastCall, nullptr},
};

}  // namespace

void TellSteps() { g_steps_are_told = true; }

}  // namespace trainprof::collectors

// 1: the next two may be called. 0: this process has no Python of which hooks can be functions.
extern "C" [[gnu::visibility("default")]] int TrainprofFindHooks() {
  using namespace trainprof::collectors;
  if (g_python == nullptr) g_python = FindPython();
  return g_python != nullptr ? 1 : 0;
}

// The hook of that name, a new reference to a function of Python; to a number where there is none, since
// ctypes takes no nullptr for an object. Called with the GIL.
extern "C" [[gnu::visibility("default")]] trainprof::collectors::PyObject* TrainprofHook(
    const char* name) {
  using namespace trainprof::collectors;
  for (const BuiltIn& hook : kHooks) {
    if (strcmp(hook.name, name) == 0) return g_python->new_function(&hook, nullptr, nullptr);
  }
  return Int(0);
}

// Who answers the question of that name. 0: there is no such question.
extern "C" [[gnu::visibility("default")]] int TrainprofHookCalls(
    const char* name, trainprof::collectors::PyObject* answer) {
  using namespace trainprof::collectors;
  for (uint32_t i = 0; i < kQuestions; ++i) {
    if (strcmp(kQuestionNames[i], name) != 0) continue;
    g_python->keep(answer);
    g_answers[i] = answer;
    return 1;
  }
  return 0;
}
