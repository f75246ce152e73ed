// What a training thread does between the calls that hooks see. Each hook reports what has ended; the time
// before it gets its name then: what ends where a backward pass begins was the forward pass, what ends at
// the next batch without one was validation. Times are ns of CLOCK_MONOTONIC.
#pragma once

#include "collectors/core/registry.h"

namespace trainprof::collectors {

// Of ranges that are torch's, and not named by the user.
const Domain* TorchDomain();

// The event that a thread's time follows.
enum class After : uint8_t {
  kNothing,
  kBatch,
  kBackward,
  kZeroed,   // gradients were cleared
  kClipped,  // or unscaled
  kStepping,
  kStepped,
  kModule,  // a module was called, in a loop that no loader feeds
};

// Of a thread; zeros before its first event.
struct ThreadPhases {
  static constexpr uint32_t kMostPauses = 64;
  static constexpr uint32_t kMostSteps = 8;
  struct Step {
    const void* optimizer;
    int64_t begin;
  };
  struct Pause {
    int64_t begin;
    int64_t end;
  };

  int64_t since;           // the last event; what happened since has no name yet
  int64_t idle_since;      // the end of the last step or backward pass
  int64_t backward_begin;  // of the last pass that has ended
  int64_t backward_end;
  const void* batches_from;  // the iterator that gave the last one
  const void* told;          // the one whose settings were told last
  uint64_t told_version;     // of what else there is to tell; 0: nothing was
  After after;
  bool is_fed;  // batches come from a loader or a queue
  bool in_backward;
  bool trains;             // has run a backward pass
  uint32_t loaders;        // calls of loaders that are under way, one in the other
  uint32_t pause_count;    // of what the thread logged since, and is no part of the phase to come
  Step steps[kMostSteps];  // of optimizers, under way
  Pause pauses[kMostPauses];
};

// The events of the calling thread, while its writer is held. Nothing is written where that cannot be.
class Phases {
 public:
  explicit Phases(ThreadWriter& writer)
      : writer_(writer), thread_(*static_cast<ThreadPhases*>(writer.hook_memory())) {}
  ThreadPhases& thread() { return thread_; }

  // A range that ends now, or at `end`.
  int64_t Write(const Place* place, int64_t begin);
  void Write(const Place* place, int64_t begin, int64_t end);

  // Whether what happened until now would be validation, if gradients were off or the thread trains.
  bool MayBeValidation(int64_t now) const;
  // It was. When that had been looked at: when the loader was asked.
  int64_t ValidationEnded();
  void LoaderReturned(const Place* site, const void* iterator, int64_t begin, bool has_batch);

  void ModuleCalled(const Place* site);
  // When it began; kNested within another one.
  static constexpr int64_t kNested = -1;
  int64_t BackwardBegins();
  void BackwardEnded(const Place* site, int64_t begin);
  void GradientsCleared(const Place* name, int64_t begin);
  void GradientsHandled(const Place* site, int64_t begin);
  void StepBegins(const void* optimizer);
  // False: it had not begun.
  bool StepEnded(const Place* site, const void* optimizer);

  // Of the one that counts steps: a step begins, and recording with it.
  bool RecordingBegins() { return writer_.StepBegins(); }

  // What happened since the last event is nobody's.
  void BeginsHere();

  // Something between two steps, before which the next batch is not made.
  void Paused(const Place* site, int64_t begin);
  // The same, by a thread that trains, wherever it stands.
  void Logged(const Place* site, int64_t begin);
  // A queue's get() came back with what was waited for.
  void QueueGave(int64_t end);

 private:
  // The time since the last event, less pauses, has a name. When it ends: now.
  int64_t NameGap(const Place* name);

  ThreadWriter& writer_;
  ThreadPhases& thread_;
};

// What only fills a gap: less is between two lines.
inline constexpr int64_t kShortestNs = 20'000;

}  // namespace trainprof::collectors
