// The sampler of stacks on real programs: what stands in its file, and what it does where it may not
// read.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <set>

#include "collectors/machine/schedule.h"
#include "collectors/machine/stack_sampler.h"
#include "tests/collectors/python_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"
#include "trace/base/names.h"
#include "trace/recording/files/host_file.h"
#include "trace/recording/files/stack_file.h"
#include "trace/recording/wire/facts.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::testing {
namespace {

using namespace recording;

// What a file holds: samples and weights by thread and innermost Python function.
class Contents : public StackSink {
 public:
  explicit Contents(const ScratchFolder& folder) {
    for (const auto& path : HostFilesIn(folder.path(), kStacksPrefix)) {
      const auto file = ReadHostFile(path);
      if (file.ok()) damaged += DecodeStackFrames(file.value().frames, *this);
    }
  }
  void OnKey() override {
    pids_.clear();
    threads_.clear();
    frames_.clear();
    stacks_.assign(1, "");
  }
  void OnProcess(const HostEntity& process) override { pids_.push_back(process.number); }
  void OnThread(uint32_t process, int64_t tid, std::string_view) override {
    threads_.emplace_back(pids_.at(process), tid);
  }
  void OnFrame(std::string_view function, std::string_view file, int64_t) override {
    frames_.emplace_back(file == kBuiltInFile ? "" : function);
  }
  void OnStack(uint32_t caller, uint32_t frame) override {
    stacks_.push_back(frames_.at(frame).empty() ? stacks_.at(caller) : frames_.at(frame));
  }
  void OnSample(const Sample& sample) override {
    const auto [pid, tid] = threads_.at(sample.thread);
    const std::string key = std::to_string(pid) + "/" + std::to_string(tid);
    ++samples[key];
    weight_ns[key] += sample.weight_ns;
    ++functions[key][stacks_.at(sample.stack)];
    running[key] += sample.state == ThreadStateCode::kRunning;
    gil[key] += sample.state == ThreadStateCode::kGil;
  }
  void OnFact(std::string_view key, std::string_view text) override {
    facts[std::string(key)] = text;
  }

  int64_t damaged = 0;
  std::map<std::string, int> samples, running, gil;
  std::map<std::string, int64_t> weight_ns;
  std::map<std::string, std::map<std::string, int>> functions;
  std::map<std::string, std::string> facts;

 private:
  std::vector<int64_t> pids_;
  std::vector<std::pair<int64_t, int64_t>> threads_;
  std::vector<std::string> frames_;
  std::vector<std::string> stacks_;
};

HostEntity ProcessOf(pid_t pid, pid_t parent = 1) {
  return {HostEntityKind::kProcess, pid, parent, 1, "python"};
}

// So many cores that what it may cost is no limit.
constexpr uint32_t kManyCores = 64;

void SampleFor(double seconds, double hz, const ScratchFolder& folder,
               const std::vector<HostEntity>& processes, uint32_t cores = kManyCores) {
  auto log = SampleLog::Create(folder.path(), HostHeader{}, 64 << 20, kStacksPrefix);
  ASSERT_TRUE(log.ok()) << log.error();
  StackSampler sampler("/", hz, cores, log.value());
  const int64_t end = MonotonicNs() + static_cast<int64_t>(seconds * 1e9);
  sampler.Follow(processes);
  for (int64_t next = 0; next < end;) {
    sampler.Sample();
    next = sampler.NextNs();
    const int64_t left = next - MonotonicNs();
    if (left > 0) usleep(static_cast<useconds_t>(left / 1000));
  }
  sampler.Finish();
}

class PythonSampler : public ::testing::TestWithParam<std::string> {};

// What the sampler does is the same for each; what it reads of each is PythonStacks'.
std::vector<std::string> NewestPython() {
  std::vector<std::string> found = Pythons();
  if (found.size() > 1) found.erase(found.begin(), found.end() - 1);
  return found;
}

INSTANTIATE_TEST_SUITE_P(Installed, PythonSampler, ::testing::ValuesIn(NewestPython()),
                         [](const auto& python) {
                           const std::string& path = python.param;
                           return "Python3_" + path.substr(path.rfind('.') + 1);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonSampler);

class PythonGil : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Installed, PythonGil, ::testing::ValuesIn(Pythons()),
                         [](const auto& python) {
                           const std::string& path = python.param;
                           return "Python3_" + path.substr(path.rfind('.') + 1);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonGil);

// Of two threads that only run Python one always waits; of others that wait, each has its own reason.
TEST_P(PythonGil, IsWhatThreadsThatRunPythonWaitFor) {
  const PythonProgram program(GetParam(), R"(import queue, threading, time
def spins():
    while True: sum(i for i in range(1000))
held = threading.Lock()
held.acquire()
waits = [spins, spins, held.acquire, threading.Event().wait, queue.Queue().get]
threads = [threading.Thread(target=f, daemon=True) for f in waits]
for t in threads: t.start()
print(' '.join(str(t.native_id) for t in threads))
time.sleep(1000)
)");
  const ScratchFolder folder;
  SampleFor(2, 100, folder, {ProcessOf(program.pid())});
  const Contents seen(folder);
  std::istringstream ids(program.first_line());
  std::vector<std::string> keys;
  for (std::string id; ids >> id;) keys.push_back(std::to_string(program.pid()) + "/" + id);
  ASSERT_EQ(keys.size(), 5u);
  const int both = seen.samples.at(keys[0]) + seen.samples.at(keys[1]);
  const int waited = seen.gil.at(keys[0]) + seen.gil.at(keys[1]);
  std::cout << waited << " of " << both << " samples\n";
  EXPECT_GE(waited, both * 2 / 10);
  EXPECT_LE(waited, both * 7 / 10);
  for (size_t i = 2; i < keys.size(); ++i) {
    EXPECT_GE(seen.samples.at(keys[i]), 10);
    EXPECT_LE(seen.gil.at(keys[i]), 1) << i;  // it may not have begun to wait when this begins
  }
}

TEST_P(PythonSampler, MainThreadsAndThoseThatRunComeEachTimeOthersLessOften) {
  const PythonProgram program(GetParam(), R"(import threading, time
def waits():
    time.sleep(1000)
def works():
    while True: sum(range(1000))
threads = [threading.Thread(target=f, daemon=True) for f in (waits, works)]
for t in threads: t.start()
print(' '.join(str(t.native_id) for t in threads))
time.sleep(1000)
)");
  const size_t blank = program.first_line().find(' ');
  const std::string of = std::to_string(program.pid()) + "/";
  const std::string waits = of + program.first_line().substr(0, blank);
  const std::string works = of + program.first_line().substr(blank + 1);
  const std::string main = of + std::to_string(program.pid());
  const ScratchFolder folder;
  SampleFor(1.5, 100, folder, {ProcessOf(program.pid())});
  const Contents seen(folder);
  EXPECT_EQ(seen.damaged, 0);
  EXPECT_GE(seen.samples.at(main), 80);
  EXPECT_LE(seen.samples.at(main), 180);
  EXPECT_GE(seen.samples.at(works), seen.samples.at(main) * 8 / 10);
  EXPECT_LE(seen.samples.at(waits), seen.samples.at(main) / 4);
  for (const std::string& thread : {main, works, waits}) {
    EXPECT_NEAR(static_cast<double>(seen.weight_ns.at(thread)), 1.5e9, 0.3e9) << thread;
  }
  EXPECT_GE(seen.functions.at(works).at("works"), seen.samples.at(works) * 9 / 10);
  EXPECT_LE(seen.running.at(main), 1);  // it may not have begun to sleep when this begins
  EXPECT_GE(seen.running.at(works), seen.samples.at(works) / 2);
  EXPECT_TRUE(seen.facts.contains(fact::kStackSampler));
}

// 2 cores: 1 % of one. Beside its rounds that is waking up, and finding the program once.
TEST_P(PythonSampler, ComesLessOftenWhereItWouldCostTooMuch) {
  const PythonProgram program(GetParam(), R"(import threading, time
def deep(n):
    if n: return deep(n - 1)
    while True: sum(range(1000))
for _ in range(5): threading.Thread(target=deep, args=(40,), daemon=True).start()
print('ready')
time.sleep(1000)
)");
  const ScratchFolder folder;
  const int64_t begin = ThreadCpuNs();
  SampleFor(2, 1000, folder, {ProcessOf(program.pid())}, 2);
  const double share = static_cast<double>(ThreadCpuNs() - begin) / 2e9;
  std::cout << share * 100 << " % of a core\n";
  EXPECT_LE(share, kIsSanitized ? 0.05 : 0.025);
  const std::string pid = std::to_string(program.pid());
  EXPECT_LE(Contents(folder).samples.at(pid + "/" + pid), 1000);
}

TEST_P(PythonSampler, OfManyChildrenEightComeEachTime) {
  const PythonProgram program(GetParam(), R"(import os, time
pids = []
for i in range(11):
    pid = os.fork()
    if pid == 0:
        time.sleep(1000)
    pids.append(str(pid))
time.sleep(0.1)
print(' '.join(pids))
time.sleep(1000)
)");
  std::vector<HostEntity> processes = {ProcessOf(program.pid())};
  std::istringstream words(program.first_line());
  for (pid_t pid = 0; words >> pid;) processes.push_back(ProcessOf(pid, program.pid()));
  const ScratchFolder folder;
  SampleFor(1, 100, folder, processes);
  const Contents seen(folder);
  int often = 0, seldom = 0;
  const int most =
      seen.samples.at(std::to_string(program.pid()) + "/" + std::to_string(program.pid()));
  for (size_t i = 1; i < processes.size(); ++i) {
    const std::string pid = std::to_string(processes[i].number);
    const auto found = seen.samples.find(pid + "/" + pid);
    const int samples = found == seen.samples.end() ? 0 : found->second;
    often += samples >= most * 8 / 10;
    seldom += samples > 0 && samples <= most / 5;
    kill(static_cast<pid_t>(processes[i].number), SIGKILL);
  }
  EXPECT_EQ(often, 8);
  EXPECT_EQ(seldom, 3);
}

TEST_P(PythonSampler, FollowsAProcessThatBecomesAnotherProgram) {
  const PythonProgram program(GetParam(), R"(import os, sys, time
def before():
    print('ready')
    time.sleep(0.3)
before()
os.execv(sys.executable, [sys.executable, '-c', '''import time
def after():
    time.sleep(1000)
after()'''])
)");
  const ScratchFolder folder;
  SampleFor(1.5, 100, folder, {ProcessOf(program.pid())});
  const Contents seen(folder);
  const std::string pid = std::to_string(program.pid());
  const auto& functions = seen.functions.at(pid + "/" + pid);
  EXPECT_GE(functions.at("before"), 10);
  EXPECT_GE(functions.at("after"), 20);
}

// Forbids these system calls in this process, as containers' rules do; kNoCall: none.
constexpr long kNoCall = -1;
void Forbid(long call, long other) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(other), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(std::size(filter)), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(2);
}

// What a sampler that lacks these system calls writes of the program.
Contents SampleWithout(long call, long other, const PythonProgram& program) {
  const ScratchFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    Forbid(call, other);
    SampleFor(0.7, 100, folder, {ProcessOf(program.pid())});
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  return Contents(folder);
}

TEST_P(PythonSampler, WhereTheCallIsRefusedItReadsThroughTheFile) {
  const PythonProgram program(GetParam(), R"(print('ready')
def work():
    while True: sum(range(100))
work()
)");
  const Contents seen = SampleWithout(SYS_process_vm_readv, kNoCall, program);
  EXPECT_FALSE(seen.facts.contains(fact::kNoStacks));
  const std::string pid = std::to_string(program.pid());
  ASSERT_TRUE(seen.functions.contains(pid + "/" + pid));
  EXPECT_GE(seen.functions.at(pid + "/" + pid).at("work"), 10);
}

TEST_P(PythonSampler, WhereItMayNotReadItSaysSoAndGivesUp) {
  const PythonProgram program(GetParam(), "import time\nprint('ready')\ntime.sleep(1000)\n");
  const Contents seen = SampleWithout(SYS_process_vm_readv, SYS_preadv, program);
  EXPECT_TRUE(seen.samples.empty());
  ASSERT_TRUE(seen.facts.contains(fact::kNoStacks));
  EXPECT_NE(seen.facts.at(fact::kNoStacks).find("not allowed"), std::string::npos)
      << seen.facts.at(fact::kNoStacks);
}

// Wherever the kill comes, what was written before it can be read.
TEST_P(PythonSampler, KillOfTheSamplerCostsNoMoreThanTheLastTenth) {
  const PythonProgram program(GetParam(), R"(print('ready')
def work():
    while True: sum(range(100))
work()
)");
  for (const int milliseconds : {150, 333, 700}) {
    const ScratchFolder folder;
    const pid_t child = fork();
    if (child == 0) {
      SampleFor(100, 200, folder, {ProcessOf(program.pid())});
      _exit(0);
    }
    usleep(static_cast<useconds_t>(milliseconds * 1000));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const Contents seen(folder);
    EXPECT_EQ(seen.damaged, 0);
    const std::string pid = std::to_string(program.pid());
    const auto weight = seen.weight_ns.find(pid + "/" + pid);
    const double seconds =
        weight == seen.weight_ns.end() ? 0 : static_cast<double>(weight->second) / 1e9;
    EXPECT_GE(seconds, milliseconds / 1000.0 - 0.2);
  }
}

}  // namespace
}  // namespace trainprof::testing
