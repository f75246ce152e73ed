// A process of ours beside the program: it does its work, and the program cannot tell.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "collectors/core/own_process.h"

namespace trainprof::collectors {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

struct Ran {
  OwnProcessEnd end;
  std::string output;
};

Ran Shell(const std::string& script, int64_t limit_ns = 60 * kSecondNs, size_t size = 4096) {
  const char* arguments[] = {"sh", "-c", script.c_str(), nullptr};
  const char* environment[] = {"PATH=/usr/bin:/bin", "WORD=kept", nullptr};
  std::string output(size, '\0');
  const OwnProcess process = {"/bin/sh", arguments, environment, limit_ns};
  Ran ran{RunOwnProcess(process, output.data(), size), ""};
  output.resize(ran.end.output_bytes);
  ran.output = output;
  return ran;
}

std::atomic<int> g_ends{0};
void CountEnd(int) { ++g_ends; }

TEST(CuptiOwnProcess, GivesItsOutputAndItsEnd) {
  const Ran well = Shell("printf %s $WORD >&3; exit 9");
  EXPECT_EQ(well.output, "kept");
  EXPECT_EQ(well.end.exit_code, 9);
  EXPECT_EQ(well.end.error, 0);
  EXPECT_EQ(Shell("kill -KILL $$").end.signal, SIGKILL);
  EXPECT_EQ(Shell("printf 123456 >&3", kSecondNs * 60, 4).output, "1234");
}

TEST(CuptiOwnProcess, IsKilledWhenTimeIsUp) {
  const Ran slow = Shell("printf begun >&3; exec sleep 100", 5 * kSecondNs);
  EXPECT_TRUE(slow.end.timed_out);
  EXPECT_EQ(slow.output, "begun");
  // One that closes its output and stays is at its end as well.
  EXPECT_FALSE(Shell("exec 3>&-; exec sleep 100").end.timed_out);
}

TEST(CuptiOwnProcess, SendsNoSignalAndIsNoChildToWaitFor) {
  g_ends = 0;
  struct sigaction counted {};
  struct sigaction before {};
  counted.sa_handler = CountEnd;
  sigaction(SIGCHLD, &counted, &before);
  std::atomic<bool> done{false};
  std::atomic<int> found{0};
  std::thread waits([&] {
    while (!done) found += waitpid(-1, nullptr, WNOHANG) > 0 ? 1 : 0;
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Shell("exit 3").end.exit_code, 3);
  done = true;
  waits.join();
  sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(g_ends, 0);
  EXPECT_EQ(found, 0);
  EXPECT_EQ(waitpid(-1, nullptr, __WALL | WNOHANG), -1) << "left a child behind";
}

TEST(CuptiOwnProcess, WorksWhereTheProgramIgnoresChildrenAndBlocksSignals) {
  struct sigaction ignored {};
  struct sigaction before {};
  ignored.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignored, &before);
  sigset_t all;
  sigset_t mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  EXPECT_EQ(Shell("exit 4").end.exit_code, 4);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &mask, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), 1) << "the mask is as it was";
  struct sigaction now {};
  sigaction(SIGCHLD, &before, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

TEST(CuptiOwnProcess, HasNoneOfTheProgramsDescriptors) {
  const int held = fcntl(STDOUT_FILENO, F_DUPFD, 50);
  EXPECT_EQ(Shell("exec ls /proc/self/fd >&3").output, "0\n1\n2\n3\n4\n") << "4 is the folder";
  EXPECT_EQ(Shell("exec readlink /proc/self/fd/0 /proc/self/fd/2 >&3").output,
            "/dev/null\n/dev/null\n");
  const int next = dup(STDOUT_FILENO);
  Shell("exit 0");
  const int after = dup(STDOUT_FILENO);
  EXPECT_EQ(after, next + 1) << "a descriptor was left behind";
  for (const int fd : {held, next, after}) close(fd);
}

// What the program closes meanwhile is closed: the other end of its pipe learns of it at once.
TEST(CuptiOwnProcess, KeepsNoneOfThemOpenMeanwhile) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> runs{true};
  std::thread asks([&] {
    Shell("exec sleep 3");
    runs = false;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  close(ends[1]);
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  EXPECT_TRUE(runs);
  asks.join();
  close(ends[0]);
}

TEST(CuptiOwnProcess, LeavesNoCoreAndHasAStackThatEnds) {
  EXPECT_EQ(Shell("ulimit -c >&3").output, "0\n");
  rlimit before{};
  getrlimit(RLIMIT_STACK, &before);
  const rlimit endless = {before.rlim_max, before.rlim_max};
  setrlimit(RLIMIT_STACK, &endless);
  EXPECT_EQ(Shell("ulimit -s >&3").output, "8192\n");
  setrlimit(RLIMIT_STACK, &before);
}

TEST(CuptiOwnProcess, SaysWhyItCannotStart) {
  const char* arguments[] = {"nowhere", nullptr};
  const OwnProcess nowhere = {"/nowhere/program", arguments, arguments + 1, kSecondNs};
  EXPECT_EQ(RunOwnProcess(nowhere, nullptr, 0).error, -ENOENT);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none = {3, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const Ran ran = Shell("exit 0");
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(ran.end.error, -EMFILE);
}

}  // namespace
}  // namespace trainprof::collectors
