// Samples the stacks of all Python threads of the run's processes into their file, from outside:
// the program is neither stopped nor signalled.
//
// A process's main thread, and whichever thread has been running lately, is sampled each time, the
// others a fifth as often. Of many children of one process (a loader's workers) the first eight are,
// the others a tenth as often. Where all of it costs more than its share of a core, everything comes
// less often.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "collectors/machine/proc_file.h"
#include "collectors/machine/sample_log.h"
#include "collectors/stacks/given_memory.h"
#include "collectors/stacks/python_process.h"
#include "trace/recording/files/stack_encoder.h"

namespace trainprof {

class StackSampler {
 public:
  // `cores` of the machine: what may be spent follows them.
  // `door`: where processes hand in their memory (given_memory.h), or -1.
  StackSampler(std::filesystem::path root, double hz, uint32_t cores, SampleLog& log,
               int door = -1);

  // The processes of the run there are now, each behind its parent.
  void Follow(const std::vector<recording::HostEntity>& processes);
  // One round over all that are due.
  void Sample();
  // When the next round is to begin, CLOCK_MONOTONIC: jittered, so that no loop keeps step with it.
  int64_t NextNs();
  // Writes what is left, and what it cost.
  void Finish();

 private:
  struct Thread {
    // `folder`: /proc/PID/task/TID.
    Thread(uint32_t its_number, const std::filesystem::path& folder)
        : number(its_number), stat(folder / "stat"), syscall(folder / "syscall") {}
    uint32_t number;
    ProcFile stat;
    ProcFile syscall;
    int64_t last_ns = 0;  // of its last sample
    uint64_t due_round = 0;
    uint64_t running_round = 0;  // when it was last seen running
    uint64_t listed_round = 0;
  };
  struct Target {
    recording::HostEntity what;
    uint32_t number = 0;
    std::optional<PythonProcess> python;
    size_t order = 0;  // among the Python children of its parent
    int64_t next_try_ns = 0;
    int64_t try_after_ns = 0;
    uint32_t failures = 0;
    std::string refusal;       // to be said at its end, unless its memory comes
    int64_t torch_ns = 0;      // when torch was first seen on a stack; 0: not yet
    int hooks_asked = 0;       // when it was, and when its hooks would have loaded our library
    std::string no_hooks;      // why it lacks them, if that was said
    int64_t hooks_due_ns = 0;  // when it is looked again whether they came with CUDA or NVTX
    std::map<int64_t, Thread> threads;
  };
  struct Status {
    std::string name;
    recording::ThreadStateCode state = recording::ThreadStateCode::kUnknown;
  };

  void Find(Target& target, int64_t now_ns);
  void AcceptMemory();
  // Its stacks cannot be read: said at once, or, where its memory may yet be handed in, at its end.
  void GiveUp(Target& target, const std::string& why);
  void SayRefusal(const Target& target);
  void SayOnce(const std::string& text);
  void SampleProcess(Target& target);
  void SayIfNoHooks(Target& target);
  void TakeBackIfHooksCame(Target& target);
  void SampleThread(Target& target, Thread& thread, const PythonThread& python);
  Thread& ThreadOf(Target& target, int64_t tid);
  Status ReadStatus(ProcFile& file);
  bool WaitsForGil(const PythonProcess& python, ProcFile& syscall);
  void ForgetEndedThreads(Target& target);
  void Flush();
  void BeginAnew();

  std::filesystem::path root_;
  int64_t period_ns_;  // as asked for
  double share_;       // the most of one core
  SampleLog& log_;
  recording::StackEncoder encoder_;
  NumberFrame number_frame_;
  GivenMemory given_;
  PythonFinder finder_;
  std::map<pid_t, Target> targets_;
  std::minstd_rand random_;
  uint64_t round_ = 0;
  double cost_ns_ = 0;  // of a round, smoothed
  int64_t began_ns_;
  int64_t flushed_ns_;
  int64_t samples_ = 0;
  int64_t unusable_ = 0;
  std::set<std::string> said_;
  bool met_torch_ = false;  // among the functions of the process that is being sampled
  std::vector<PythonThread> threads_;
  std::vector<uint32_t> frames_;
  std::string buffer_;
};

}  // namespace trainprof
