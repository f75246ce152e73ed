// The ITT collector (Intel's Instrumentation and Tracing Technology): torch gives each operator to it
// as a task while torch.autograd.profiler.emit_itt() is on (trainprof/_ops.py), in builds for CPUs and
// for CUDA alike. ITT's part in the program loads this library when INTEL_LIBITTNOTIFY64 names it and,
// as it finds __itt_api_version, takes those functions by name that the groups of
// INTEL_ITTNOTIFY_GROUPS hold; what is not here does nothing there.
//
// The structures are ITT's own, as programs were compiled with (ittnotify.h, API version 3). Their part
// of ITT makes domains itself, perhaps before this library is there.
#include <string.h>

#include "collectors/core/registry.h"
#include "collectors/core/thread_writer.h"
#include "trace/recording/wire/format.h"

#define TRAINPROF_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

using trainprof::collectors::Domain;
using trainprof::collectors::MakeText;
using trainprof::collectors::Text;
using trainprof::collectors::ThreadWriter;

// The beginning of __itt_domain.
struct IttDomain {
  volatile int flags;
  const char* name;
};

// __itt_id, which is passed by value.
struct IttId {
  unsigned long long d1, d2, d3;
};

// The thread's writer where the process is recorded and the task is an operator of torch: libraries
// that it calls, such as oneDNN, have domains of their own.
ThreadWriter* WriterFor(const IttDomain* domain) {
  if (trainprof::collectors::g_runtime.state.get() == nullptr || domain == nullptr ||
      domain->name == nullptr || strcmp(domain->name, "PyTorch") != 0) {
    return nullptr;
  }
  return ThreadWriter::Enter();
}

const Domain* Operators() {
  static const Domain* const domain =
      trainprof::collectors::RegisterDomain(MakeText(trainprof::recording::kOperatorDomain));
  return domain;
}

}  // namespace

TRAINPROF_EXPORT const char* __itt_api_version() { return "3.0"; }

// A Text of ours: programs do not look into a handle. nullptr where memory runs out.
TRAINPROF_EXPORT const Text* __itt_string_handle_create(const char* name) {
  return trainprof::collectors::RegisterString(MakeText(name));
}

TRAINPROF_EXPORT void __itt_task_begin(const IttDomain* domain, IttId, IttId, const Text* name) {
  ThreadWriter* writer = WriterFor(domain);
  if (writer == nullptr) return;
  writer->Push(Operators(), name == nullptr ? MakeText("") : *name, {});
  writer->Leave();
}

TRAINPROF_EXPORT void __itt_task_end(const IttDomain* domain) {
  ThreadWriter* writer = WriterFor(domain);
  if (writer == nullptr) return;
  writer->Pop(Operators());
  writer->Leave();
}
