// What hooks and Python's part (trainprof/_phases.py) ask each other. Called under the GIL, in processes
// where FindPython() has found it.
#pragma once

#include <utility>

#include "collectors/python/call_site.h"
#include "collectors/python/phases.h"
#include "collectors/python/python_api.h"
#include "collectors/python/with_writer.h"

#define TRAINPROF_EXPORT extern "C" [[gnu::visibility("default")]]

namespace trainprof::collectors {

// What Python is asked or told, by functions that it names.
enum Question : uint8_t {
  kSite,          // (name) -> place: where stacks of this Python are not known
  kGradIsOn,      // () -> bool
  kTell,          // (id of an iterator): facts of its loader, and what else there is
  kTellWaits,     // (begin, end) of the last backward pass
  kWatchModules,  // (): the next module that is called begins a forward pass
  kNameOf,        // (optimizer) -> name
  kIsCompiling,   // () -> bool
  kStepEnded,     // ()
  kQuestions,
};
// Who answers; nullptr: nobody.
PyObject* AnswerTo(Question question);

inline const PythonApi& Python() { return *FindPython(); }

inline PyObject* Int(int64_t value) { return Python().new_int(value); }

inline int64_t IntOf(PyObject* object) {
  const int64_t value = Python().int_of(object);
  if (value != -1 || Python().error() == nullptr) return value;
  Python().clear_error();
  return 0;
}
inline const Place* PlaceOf(PyObject* object) {
  return reinterpret_cast<const Place*>(IntOf(object));
}

// What was asked came back with no mere Exception: a Ctrl-C.
inline bool IsInterrupted() { return Python().error() != nullptr; }

// Asks Python. nullptr: it has no answer, or has failed. A failure that is no mere Exception stays set, and
// nothing is asked any more.
template <class... Objects>
PyObject* Ask(Question question, Objects... arguments) {
  if (AnswerTo(question) == nullptr || IsInterrupted()) return nullptr;
  PyObject* const answer = Python().call(AnswerTo(question), arguments..., nullptr);
  if (answer == nullptr && Python().error_is(*Python().any_exception) != 0) Python().clear_error();
  return answer;
}

// What is said to Python, with numbers. False: interrupted.
template <class... Numbers>
bool Tell(Question question, Numbers... numbers) {
  if (AnswerTo(question) == nullptr || IsInterrupted()) return !IsInterrupted();
  PyObject* const objects[] = {Int(numbers)..., nullptr};
  PyObject* const answer = [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return Ask(question, objects[kAt]...);
  }
  (std::make_index_sequence<sizeof...(Numbers)>());
  for (PyObject* object : objects) {
    if (object != nullptr) Python().drop(object);
  }
  if (answer != nullptr) Python().drop(answer);
  return !IsInterrupted();
}

// A handle that Python answers with; nullptr: none.
inline const Place* Handle(PyObject* answer) {
  if (answer == nullptr) return nullptr;
  const Place* const place = PlaceOf(answer);
  Python().drop(answer);
  return place;
}

// Of a name.
const Place* Site(PyObject* name);

// The answer of a hook: a number, or that it was interrupted.
inline PyObject* Done(int64_t value = 0) { return IsInterrupted() ? nullptr : Int(value); }

template <class Event>
void WithPhases(Event event) {
  WithWriter([&](ThreadWriter& writer) {
    Phases phases(writer);
    event(phases);
  });
}

}  // namespace trainprof::collectors
