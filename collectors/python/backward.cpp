// Backward passes: autograd's engine with a method of ours. It is no function of Python, so that what torch
// warns of within is said to be where it would be without us.
#include "collectors/python/asking.h"
#include "collectors/python/hooks.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

constinit uint64_t g_told_version = 1;
constinit PyObject* g_name = nullptr;  // a handle, of "backward"

// What is due before a pass is told. False: interrupted.
bool TellBefore() {
  const uint64_t version = g_told_version;
  const void* iterator = nullptr;
  bool is_told = true;
  int64_t begin = 0;  // of the last pass
  int64_t end = 0;
  WithPhases([&](Phases& phases) {
    const ThreadPhases& thread = phases.thread();
    iterator = thread.batches_from;
    is_told = thread.told_version == version && thread.told == iterator;
    if (thread.in_backward) return;
    begin = thread.backward_begin;
    end = thread.backward_end;
  });
  if (!is_told) {
    if (!Tell(kTell, reinterpret_cast<int64_t>(iterator))) return false;
    WithPhases([&](Phases& phases) {
      phases.thread().told = iterator;
      phases.thread().told_version = version;
    });
  }
  return end == 0 || Tell(kTellWaits, begin, end);
}

// False: interrupted.
bool Ended(int64_t begin) {
  if (begin == Phases::kNested) return true;
  const Place* const site = Site(g_name);
  bool is_fed = true;
  WithPhases([&](Phases& phases) {
    phases.BackwardEnded(site, begin);
    is_fed = phases.thread().is_fed;
  });
  return is_fed ? !IsInterrupted() : Tell(kWatchModules);
}

bool IsCompiling() {
  PyObject* const answer = Ask(kIsCompiling);
  if (answer == nullptr) return false;
  const bool is_compiling = Python().is_true(answer) != 0;
  Python().drop(answer);
  return is_compiling;
}

// What the engine's own method gives.
PyObject* Run(PyObject* run, PyObject* arguments, PyObject* keywords) {
  PyObject* const own = Python().slice(arguments, 1, Python().size(arguments));
  if (own == nullptr) return nullptr;
  PyObject* const result = Python().call_with(run, own, keywords);
  Python().drop(own);
  return result;
}

// (engine, arguments of the engine's own method, which is `run`).
PyObject* RunBackward(PyObject* run, PyObject* arguments, PyObject* keywords) {
  if (IsCompiling()) return Run(run, arguments, keywords);
  if (!TellBefore()) return nullptr;
  int64_t begin = recording::MonotonicNs();
  WithPhases([&](Phases& phases) { begin = phases.BackwardBegins(); });
  PyObject* const result = Run(run, arguments, keywords);
  // Nothing is asked while there is an error: it is taken away meanwhile.
  PyObject* error[3] = {};
  if (result == nullptr) Python().fetch_error(&error[0], &error[1], &error[2]);
  const bool was_interrupted = !Ended(begin);
  if (result == nullptr) {
    Python().restore_error(error[0], error[1], error[2]);
  } else if (was_interrupted) {
    Python().drop(result);
    return nullptr;
  }
  return result;
}

constexpr BuiltInWithKeywords kRunBackward = {"run_backward", RunBackward};

}  // namespace

void TellAgain() { ++g_told_version; }

}  // namespace trainprof::collectors

// What a subclass of the engine's class takes as its method, a new reference; `run` is the method that it has, `name`
// the handle of "backward".
TRAINPROF_EXPORT trainprof::collectors::PyObject* TrainprofRunBackward(
    trainprof::collectors::PyObject* run, trainprof::collectors::PyObject* name) {
  using namespace trainprof::collectors;
  Python().keep(name);
  g_name = name;
  PyObject* const function = Python().new_function(&kRunBackward, run, nullptr);
  PyObject* const method = Python().new_method(function);
  Python().drop(function);
  return method;
}
