// Stacks of Python programs whose call chains are known, read from outside while they run.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "collectors/stacks/python_process.h"
#include "tests/collectors/python_program.h"
#include "tests/support/sanitized.h"
#include "trace/base/names.h"

namespace trainprof::testing {
namespace {

// Reads the stacks of one process; its frames in words.
class Watcher {
 public:
  explicit Watcher(pid_t pid) {
    const auto place = PythonFinder("/").Find(pid);
    if (!place.ok()) {
      error = place.error();
    } else if (place.value()) {
      process_.emplace("/", pid, *place.value());
    }
  }
  bool found() const { return process_.has_value(); }

  // Of each thread "inner:3 < main:9", or "?" where it could not be read, "" where there is none.
  std::map<int64_t, std::string> Stacks() {
    std::map<int64_t, std::string> stacks;
    std::vector<PythonThread> threads;
    alive = process_->ListThreads(threads);
    for (const PythonThread& thread : threads) {
      std::vector<uint32_t> frames;
      const StackOutcome outcome = process_->ReadStack(
          thread,
          [&](std::string_view function, std::string_view file, int64_t line) {
            if (file == kBuiltInFile) {
              EXPECT_EQ(line, 0);
              names_.emplace_back(function);
              return static_cast<uint32_t>(names_.size()) - 1;
            }
            files.emplace(file);
            names_.push_back(std::string(function) + ":" + std::to_string(line));
            return static_cast<uint32_t>(names_.size()) - 1;
          },
          frames);
      std::string text = outcome == StackOutcome::kUnusable ? "?" : "";
      calls.erase(thread.tid);
      for (const uint32_t frame : frames) {
        if (names_[frame].find(':') == std::string::npos) {
          EXPECT_EQ(frame, frames[0]);
          calls[thread.tid] = names_[frame];
          continue;
        }
        text += (text.empty() ? "" : " < ") + names_[frame];
      }
      stacks[thread.tid] = text;
    }
    return stacks;
  }

  // Reads until it is so: what a program does after its first line takes as long as the machine likes. The last stacks.
  std::map<int64_t, std::string> StacksWhen(
      const std::function<bool(const std::map<int64_t, std::string>&)>& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    auto stacks = Stacks();
    while (!is_so(stacks) && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stacks = Stacks();
    }
    return stacks;
  }
  std::string StackWhenIn(int64_t tid, const std::string& function) {
    return StacksWhen([&](const auto& stacks) {
      const auto found = stacks.find(tid);
      return found != stacks.end() && found->second.starts_with(function);
    })[tid];
  }

  std::string error;
  bool alive = true;
  std::set<std::string> files;
  // By thread: the function without Python code that the last stack's innermost one calls.
  std::map<int64_t, std::string> calls;

 private:
  std::optional<PythonProcess> process_;
  std::vector<std::string> names_;
};

class PythonStacks : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Installed, PythonStacks, ::testing::ValuesIn(Pythons()),
                         [](const auto& python) {
                           const std::string& path = python.param;
                           return "Python3_" + path.substr(path.rfind('.') + 1);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonStacks);

TEST_P(PythonStacks, OfAKnownChain) {
  const PythonProgram program(GetParam(), R"(import time

def inner(n):
    if n > 0:
        return inner(n - 1)
    time.sleep(1000)

def numbers():
    yield 1
    inner(2)
    yield 2

class Loop:
    def run(self):
        for _ in numbers():
            pass

def main():
    print('ready')
    [Loop().run() for _ in range(1)]

main()
)");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  const auto stacks = watcher.StacksWhen([](const auto& threads) {
    return threads.size() == 1 && threads.begin()->second.starts_with("inner:6");
  });
  ASSERT_EQ(stacks.size(), 1u);
  EXPECT_EQ(stacks.begin()->first, program.pid());
  std::string stack = stacks.begin()->second;
  // 3.10 has no qualified names; 3.12 made comprehensions part of their function.
  if (const size_t at = stack.find("Loop."); at != std::string::npos) stack.erase(at, 5);
  for (const char* comprehension : {" < <listcomp>:20", " < main.<locals>.<listcomp>:20"}) {
    const size_t at = stack.find(comprehension);
    if (at != std::string::npos) stack.erase(at, strlen(comprehension));
  }
  EXPECT_EQ(stack, "inner:6 < inner:5 < inner:5 < numbers:10 < run:15 < main:20 < <module>:22");
  EXPECT_EQ(watcher.files, std::set<std::string>{program.file()});
}

// What stands in the source, from 3.11 on.
TEST_P(PythonStacks, FunctionsWithoutPythonCodeAreNamedAsTheirCallerSpellsThem) {
  const PythonProgram program(GetParam(), R"(import threading, time, select
from time import sleep as nap
lock = threading.Lock()
lock.acquire()
class Waiter:
    event = select.poll()
def naps(): nap(1000)
def takes():
    with lock:
        pass
def polls(): Waiter().event.poll(
        1000 *
        1000)
def computes():
    while True: sum(x for x in ()) + sum(range(20000))
def loops():
    for i in iter(int, 1): pass
threads = [threading.Thread(target=f, daemon=True) for f in (naps, takes, polls, computes, loops)]
for t in threads: t.start()
print(' '.join(str(t.native_id) for t in threads))
time.sleep(1000)
)");
  const bool has_columns = GetParam().substr(GetParam().rfind('.') + 1) != "10";
  std::istringstream ids(program.first_line());
  int64_t naps = 0, takes = 0, polls = 0, computes = 0, loops = 0;
  ids >> naps >> takes >> polls >> computes >> loops;
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  watcher.StacksWhen([&](const auto& stacks) {
    if (!stacks.at(program.pid()).starts_with("<module>:21")) return false;
    return !has_columns || (watcher.calls[program.pid()] == "time.sleep" &&
                            watcher.calls[naps] == "nap" && watcher.calls[polls] == ".event.poll");
  });
  int sums = 0;
  int others = 0;
  // A thread that waits for the interpreter's lock stays where it is for as long as others have it, and that is long on a
  // machine with much to do: as many looks as it takes to find this one at work.
  constexpr int kLeastSums = 100;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int i = 0;
       i < 200 || (has_columns && sums < kLeastSums && std::chrono::steady_clock::now() < deadline);
       ++i) {
    watcher.Stacks();
    EXPECT_EQ(watcher.calls[program.pid()], has_columns ? "time.sleep" : "");
    EXPECT_EQ(watcher.calls[naps], has_columns ? "nap" : "");
    EXPECT_EQ(watcher.calls[takes], "");  // a statement that calls what it does not spell
    EXPECT_EQ(watcher.calls[polls], has_columns ? ".event.poll" : "");
    EXPECT_EQ(watcher.calls[loops], "");  // it calls nothing: iter() has returned
    const std::string& computed = watcher.calls[computes];
    sums += computed == "sum";
    others += !computed.empty() && computed != "sum" && computed != "range";
  }
  EXPECT_GE(sums, has_columns ? kLeastSums : 0);
  EXPECT_EQ(others, 0);
}

TEST_P(PythonStacks, OfThreadsThatAllRunAreThoseOfTheirFunctions) {
  const PythonProgram program(GetParam(), R"(import threading, time
def spin_a():
    while True:
        sum(range(50))
def spin_b():
    while True:
        sum(range(50))
def waits():
    time.sleep(1000)
threads = [threading.Thread(target=f, daemon=True) for f in (spin_a, spin_b, waits)]
for t in threads: t.start()
print(' '.join(str(t.native_id) for t in threads))
time.sleep(1000)
)");
  std::istringstream ids(program.first_line());
  int64_t a = 0, b = 0, waits = 0;
  ids >> a >> b >> waits;
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  watcher.StacksWhen([&](const auto& threads) {
    return threads.size() == 4 && threads.at(a).starts_with("spin_a:") &&
           threads.at(b).starts_with("spin_b:") && threads.at(waits).starts_with("waits:");
  });
  std::map<std::string, int> seen;
  for (int i = 0; i < 200; ++i) {
    const auto stacks = watcher.Stacks();
    ASSERT_EQ(stacks.size(), 4u);
    seen["a"] += stacks.at(a).starts_with("spin_a:");
    seen["b"] += stacks.at(b).starts_with("spin_b:");
    seen["waits"] +=
        stacks.at(waits).starts_with("waits:9 < ") || stacks.at(waits).starts_with("waits:8 < ");
    seen["main"] += stacks.at(program.pid()).starts_with("<module>:13") ||
                    stacks.at(program.pid()).starts_with("<module>:12");
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  EXPECT_EQ(seen["waits"], 200);
  EXPECT_EQ(seen["main"], 200);
  EXPECT_GE(seen["a"], 195);
  EXPECT_GE(seen["b"], 195);
}

// Nothing but calls that take less than a microsecond: a copy takes longer. Whatever comes out is
// of this program, and nearly always a chain that it has.
TEST_P(PythonStacks, OfAProgramThatDoesNothingButCallAreSeldomMixed) {
  const PythonProgram program(GetParam(), R"(
def a1(): pass
def a2(): a1()
def a3(): a2(); a1()
def b1(): pass
def b2(): b1()
def b3(): b2(); b1()
def main():
    print('ready')
    while True:
        a3(); b3()
main()
)");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  const std::set<std::string> pairs = {"a1<a2", "a1<a3", "a2<a3",   "a3<main",      "b1<b2",
                                       "b1<b3", "b2<b3", "b3<main", "main<<module>"};
  int good = 0, mixed = 0, unusable = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string stack = watcher.Stacks()[program.pid()];
    if (stack == "?") {
      ++unusable;
      continue;
    }
    std::istringstream words(stack);
    std::string callee, caller;
    bool is_good = true;
    for (std::string word; words >> word;) {
      if (word == "<") continue;
      caller = word.substr(0, word.rfind(':'));
      if (!callee.empty()) is_good = is_good && pairs.contains(callee + "<" + caller);
      callee = caller;
    }
    is_good = is_good && callee == "<module>";
    (is_good ? good : mixed) += 1;
    usleep(500);
  }
  EXPECT_EQ(watcher.files, std::set<std::string>{program.file()});
  std::cout << good << " good, " << mixed << " mixed, " << unusable << " unusable\n";
  EXPECT_LE(mixed, 100);
  EXPECT_GE(good, 700);
}

// Functions come and go at the same addresses: no name is of one that is gone. The line that calls
// says which of them runs.
TEST_P(PythonStacks, OfFunctionsThatAreMadeAndDroppedHaveTheirNames) {
  const PythonProgram program(GetParam(), R"(import time
print('ready')
i = 0
while True:
    i = (i + 1) % 5
    scope = {'time': time}
    text = f'def made_{i}():\n' + '    pass\n' * i + '    time.sleep(0.003)\n'
    exec(compile(text, f'made_{i}.py', 'exec'), scope)
    made = scope.popitem()[1]
    if i == 0:
        made()
    elif i == 1:
        made()
    elif i == 2:
        made()
    elif i == 3:
        made()
    else:
        made()
)");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  int right = 0, moved = 0;
  for (int i = 0; i < 500; ++i) {
    usleep(1000);
    const std::string stack = watcher.Stacks()[program.pid()];
    int name = 0, line = 0, caller = 0;
    if (sscanf(stack.c_str(), "made_%d:%d < <module>:%d", &name, &line, &caller) != 3) continue;
    // Between two reads the program may have gone on to another line.
    const bool is_call = caller >= 11 && caller % 2 == 1;
    if (is_call && name == (caller - 11) / 2 && line >= 1 && line <= name + 2) {
      ++right;
    } else {
      ++moved;
      std::cout << stack << "\n";
    }
  }
  EXPECT_GE(right, 150);
  EXPECT_LE(moved, 10);
  for (const std::string& file : watcher.files) {
    EXPECT_TRUE(file == program.file() || (file.starts_with("made_") && file.size() == 9)) << file;
  }
}

TEST_P(PythonStacks, NamesOfAnyAlphabetAreRead) {
  const PythonProgram program(GetParam(), R"(import time
def größe():
    def данные():
        def 数据():
            time.sleep(1000)
        数据()
    данные()
print('ready')
größe()
)",
                              "тест.py");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  // Python 3.11 and later say within what a function is defined: "größe.<locals>.данные.<locals>.数据".
  const std::string stack = watcher.StacksWhen([&](const auto& stacks) {
    const auto found = stacks.find(program.pid());
    return found != stacks.end() && found->second.find("数据:5") != std::string::npos;
  })[program.pid()];
  for (const char* name : {"数据:5", "данные:6", "größe:7"}) {
    EXPECT_NE(stack.find(name), std::string::npos) << stack;
  }
  EXPECT_EQ(watcher.files, std::set<std::string>{program.file()});
}

TEST_P(PythonStacks, AreCutWhereTheyAreVeryDeep) {
  const PythonProgram program(GetParam(), R"(import sys, time
sys.setrecursionlimit(5000)
def down(n):
    if n: down(n - 1)
    else: time.sleep(1000)
print('ready')
down(2000)
)");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  const std::string stack = watcher.StackWhenIn(program.pid(), "down:5");
  EXPECT_TRUE(stack.starts_with("down:5 < down:4 < ")) << stack.substr(0, 100);
  EXPECT_EQ(static_cast<size_t>(std::count(stack.begin(), stack.end(), '<')),
            PythonProcess::kMostFrames - 1);
}

TEST_P(PythonStacks, OfForkedChildrenAreTheirOwn) {
  const PythonProgram program(GetParam(), R"(import os, time
def child_work():
    time.sleep(1000)
def parent_work():
    time.sleep(1000)
pid = os.fork()
if pid == 0:
    child_work()
time.sleep(0.05)
print(pid)
parent_work()
)");
  const pid_t child = std::stoi(program.first_line());
  Watcher parent(program.pid());
  Watcher forked(child);
  ASSERT_TRUE(parent.found() && forked.found());
  const std::string in_parent = parent.StackWhenIn(program.pid(), "parent_work:5");
  EXPECT_TRUE(in_parent.starts_with("parent_work:5")) << in_parent;
  const std::string in_child = forked.StackWhenIn(child, "child_work:3");
  EXPECT_TRUE(in_child.starts_with("child_work:3")) << in_child;
  kill(child, SIGKILL);
}

// The program says itself how long it was where.
TEST_P(PythonStacks, SharesAreThoseOfTheTime) {
  PythonProgram program(GetParam(), R"(import time
def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(100))
def waits(seconds):
    time.sleep(seconds)
print('ready')
spent = {'busy': 0.0, 'waits': 0.0}
i = 0
begin = time.perf_counter()
while time.perf_counter() < begin + 4:
    i += 1
    for f, s in ((busy, 0.02 + i % 5 / 200), (waits, 0.06 + i % 3 / 100)):
        t = time.perf_counter()
        f(s)
        spent[f.__name__] += time.perf_counter() - t
print(spent['busy'] / (spent['busy'] + spent['waits']))
)");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  int busy = 0, waits = 0;
  for (int i = 0; i < 620; ++i) {
    const std::string stack = watcher.Stacks()[program.pid()];
    busy += stack.find("busy:") != std::string::npos;
    waits += stack.find("waits:") != std::string::npos;
    usleep(static_cast<useconds_t>(3000 + i * 7919 % 6000));
  }
  const double truth = std::stod(program.Rest());
  const double seen = static_cast<double>(busy) / (busy + waits);
  std::cout << "truth " << truth << ", seen " << seen << " of " << busy + waits << "\n";
  // 4 standard errors of 600 samples, and what a full machine adds: it wakes us late while the
  // program works.
  EXPECT_NEAR(seen, truth, 0.12);
}

TEST_P(PythonStacks, OfAProcessThatIsKilledJustEnd) {
  PythonProgram program(GetParam(), "print('ready')\nwhile True: sum(range(9))\n");
  Watcher watcher(program.pid());
  ASSERT_TRUE(watcher.found()) << watcher.error;
  std::thread killer([&] {
    usleep(20'000);
    program.Kill();
  });
  while (watcher.alive) watcher.Stacks();
  killer.join();
}

TEST(PythonFinding, AProgramThatIsNoPythonIsNone) {
  const auto place = PythonFinder("/").Find(getpid());
  ASSERT_TRUE(place.ok());
  EXPECT_FALSE(place.value().has_value());
}

TEST(PythonLayouts, OfAnUnknownVersionAreRefused) {
  EXPECT_FALSE(LayoutOf(9).has_value());
  EXPECT_FALSE(LayoutOf(14).has_value());
  std::vector<char> runtime(kDebugOffsetsBytes);
  EXPECT_EQ(LayoutFromDebugOffsets(runtime).fault, LayoutFault::kSaysNothing);
  memcpy(runtime.data(), "xdebugpy", 8);
  const uint64_t version = 0x030E0000;
  memcpy(runtime.data() + 8, &version, sizeof version);
  const ToldLayout told = LayoutFromDebugOffsets(runtime);
  EXPECT_EQ(told.fault, LayoutFault::kUnknownVersion);
  EXPECT_EQ(told.layout.minor, 14);
}

TEST(PythonLayouts, OffsetsThatCannotBeAreRefused) {
  std::vector<char> runtime(kDebugOffsetsBytes, '\x7F');
  memcpy(runtime.data(), "xdebugpy", 8);
  const uint64_t head[] = {0x030D0000, 0};
  memcpy(runtime.data() + 8, head, sizeof head);
  EXPECT_NE(LayoutFromDebugOffsets(runtime).fault, LayoutFault::kNone);
}

}  // namespace
}  // namespace trainprof::testing
