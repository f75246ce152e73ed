// Tells a signal that was sent to us alone from one that the program received as well.
//
// `kill PID` of trainprof must be passed on; `timeout`, which signals its whole group, and Slurm,
// which signals every process of a step, must not be doubled: a handler that saves a checkpoint
// would run twice. The kernel does not say which it was. So a sleeping process stands beside the
// program, in its group, with all signals blocked: what is pending for it was sent to all.
#pragma once

#include <sys/types.h>

#include <chrono>

namespace trainprof {

class GroupWitness {
 public:
  // Forks; call it with the supervisor's signals blocked. Without a witness (fork failed) every
  // signal counts as sent to us alone.
  GroupWitness();
  ~GroupWitness();
  GroupWitness(const GroupWitness&) = delete;
  GroupWitness& operator=(const GroupWitness&) = delete;

  // Blocks for kDeliveryTime, in which a sender that goes from process to process gets to all.
  bool AlsoReceived(int signal);

  static constexpr std::chrono::milliseconds kDeliveryTime{20};

 private:
  void Start();
  void Stop();
  pid_t pid_ = -1;
};

}  // namespace trainprof
