#include "collectors/python/phases.h"

#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {
namespace {

using recording::MonotonicNs;

static_assert(sizeof(ThreadPhases) <= ThreadWriter::kHookBytes);

// torch's prologue before the first hook of an optimizer: what passes since the backward pass is the step's.
constexpr int64_t kPrologueNs = 300'000;

// torch's own names (trace/base/names.h), and ours where it has none.
struct Names {
  const Place* forward = RegisterPlace(MakeText("forward"), MakeText(""));
  const Place* validation = RegisterPlace(MakeText("validation"), MakeText(""));
};

const Names& Known() {
  static const Names names;
  return names;
}

}  // namespace

const Domain* TorchDomain() {
  static const Domain* const domain = RegisterDomain(MakeText("torch"));
  return domain;
}

void Phases::Write(const Place* place, int64_t begin, int64_t end) {
  if (place != nullptr) writer_.Range(TorchDomain(), *place->name, place->stack, begin, end);
}

int64_t Phases::Write(const Place* place, int64_t begin) {
  const int64_t now = MonotonicNs();
  Write(place, begin, now);
  return now;
}

int64_t Phases::NameGap(const Place* name) {
  int64_t begin = thread_.since;
  for (uint32_t i = 0; i < thread_.pause_count; ++i) {
    const ThreadPhases::Pause& pause = thread_.pauses[i];
    if (pause.begin < begin) continue;
    Write(name, begin, pause.begin);
    begin = pause.end;
  }
  thread_.pause_count = 0;
  return Write(name, begin);
}

bool Phases::MayBeValidation(int64_t now) const {
  return thread_.after == After::kBatch && thread_.loaders == 0 &&
         now - thread_.since >= kShortestNs;
}

int64_t Phases::ValidationEnded() { return NameGap(Known().validation); }

void Phases::LoaderReturned(const Place* site, const void* iterator, int64_t begin,
                            bool has_batch) {
  const int64_t end = Write(site, begin);
  if (thread_.loaders > 0) return;
  thread_.since = end;
  thread_.batches_from = iterator;
  thread_.after = has_batch ? After::kBatch : After::kNothing;
  thread_.is_fed = thread_.is_fed || has_batch;
}

void Phases::ModuleCalled(const Place* site) {
  switch (thread_.after) {
    case After::kBackward:
    case After::kClipped:
    case After::kStepped:
    case After::kZeroed:
      break;
    default:
      return;
  }
  const int64_t now = MonotonicNs();
  const bool is_long = now - thread_.idle_since > kShortestNs;
  thread_.since = is_long ? Write(site, thread_.idle_since) : now;
  thread_.after = After::kModule;
}

int64_t Phases::BackwardBegins() {
  if (thread_.in_backward) return kNested;
  thread_.in_backward = true;
  bool is_forward = thread_.is_fed;
  switch (thread_.after) {
    case After::kBackward:
    case After::kZeroed:
    case After::kClipped:
    case After::kStepping:
    case After::kModule:
      is_forward = true;
      break;
    default:
      break;
  }
  return is_forward && thread_.since != 0 ? NameGap(Known().forward) : MonotonicNs();
}

void Phases::BackwardEnded(const Place* site, int64_t begin) {
  thread_.in_backward = false;
  thread_.since = thread_.idle_since = thread_.backward_end = Write(site, begin);
  thread_.backward_begin = begin;
  thread_.after = After::kBackward;
  thread_.trains = true;
}

void Phases::GradientsCleared(const Place* name, int64_t begin) {
  const int64_t end = Write(name, begin);
  // Between a batch and its backward pass it is a part of the forward pass, as it is in a closure.
  switch (thread_.after) {
    case After::kNothing:
    case After::kBackward:
    case After::kClipped:
    case After::kStepped:
      thread_.since = end;
      thread_.after = After::kZeroed;
      break;
    default:
      break;
  }
}

void Phases::GradientsHandled(const Place* site, int64_t begin) {
  const int64_t end = Write(site, begin);
  if (thread_.after != After::kBackward && thread_.after != After::kClipped) return;
  thread_.since = end;
  thread_.after = After::kClipped;
}

void Phases::StepBegins(const void* optimizer) {
  int64_t begin = MonotonicNs();
  if (thread_.after == After::kBackward && begin - thread_.since < kPrologueNs)
    begin = thread_.since;
  thread_.since = begin;
  thread_.after = After::kStepping;  // a closure may run the forward pass
  // Its own place, or that of the one that began first: one whose step failed never ends.
  ThreadPhases::Step* place = &thread_.steps[0];
  for (ThreadPhases::Step& step : thread_.steps) {
    if (step.begin < place->begin) place = &step;
    if (step.optimizer != optimizer) continue;
    place = &step;
    break;
  }
  *place = {optimizer, begin};
}

bool Phases::StepEnded(const Place* site, const void* optimizer) {
  for (ThreadPhases::Step& step : thread_.steps) {
    if (step.optimizer != optimizer) continue;
    thread_.since = thread_.idle_since = Write(site, step.begin);
    thread_.after = After::kStepped;
    step = {};
    return true;
  }
  return false;
}

void Phases::BeginsHere() { thread_.since = thread_.idle_since = MonotonicNs(); }

void Phases::Paused(const Place* site, int64_t begin) { thread_.idle_since = Write(site, begin); }

void Phases::Logged(const Place* site, int64_t begin) {
  const int64_t end = thread_.idle_since = Write(site, begin);
  if (end - begin <= kShortestNs) return;
  // A gap that nothing names.
  if (thread_.pause_count == ThreadPhases::kMostPauses) thread_.pause_count = 0;
  thread_.pauses[thread_.pause_count++] = {begin, end};
}

void Phases::QueueGave(int64_t end) {
  thread_.since = end;
  thread_.after = After::kBatch;
  thread_.is_fed = true;
}

}  // namespace trainprof::collectors
