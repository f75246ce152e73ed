#include "trace/tables/name_facts.h"

#include "trace/base/kernel_names.h"

namespace trainprof {

NameFacts NameFactsOf(std::string_view name) {
  NameFacts facts;
  facts.is_known = 1;
  facts.is_step = IsStepName(name);
  facts.is_profiler_step = IsProfilerStep(name);
  facts.is_io = IsIoName(name);
  facts.is_garbage_collection = IsGarbageCollection(name);
  facts.is_communication = IsCommunicationKernel(name);
  facts.clears_gradients = names_internal::ContainsNoCase(name, "zero_grad");
  facts.user_phase = PhaseOfUserName(name);
  facts.torch_phase = PhaseOfTorchName(name);
  facts.api = ApiKindOf(name);
  facts.direction = CopyDirectionOf(name);
  return facts;
}

}  // namespace trainprof
