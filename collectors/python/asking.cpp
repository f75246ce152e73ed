#include "collectors/python/asking.h"

#include <string.h>

namespace trainprof::collectors {
namespace {

constexpr const char* kQuestionNames[kQuestions] = {"site",         "grad_is_on",    "tell",
                                                    "tell_waits",   "watch_modules", "name_of",
                                                    "is_compiling", "step_ended"};
constinit PyObject* g_answers[kQuestions] = {};

}  // namespace

PyObject* AnswerTo(Question question) { return g_answers[question]; }

const Place* Site(PyObject* name) {
  const Place* const bare = PlaceOf(name);
  if (bare == nullptr) return nullptr;
  if (const Place* const site = SiteOf(bare)) return site;
  const Place* const told = Handle(Ask(kSite, name));
  return told != nullptr ? told : bare;
}

}  // namespace trainprof::collectors

// Who answers the question of that name, from here on. 0: there is no such question.
TRAINPROF_EXPORT int TrainprofHookCalls(const char* name, trainprof::collectors::PyObject* answer) {
  using namespace trainprof::collectors;
  for (uint32_t i = 0; i < kQuestions; ++i) {
    if (strcmp(kQuestionNames[i], name) != 0) continue;
    Python().keep(answer);
    g_answers[i] = answer;
    return 1;
  }
  return 0;
}
