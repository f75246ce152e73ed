"""Kills, forks and exceptions at random moments of Python programs: each ends as it does without trainprof, and leaves
nothing behind.

Environment, beside that of python_test.py: TRAINPROF_TEST_ENDS, how many (200 by hand; each takes about a second), and
TRAINPROF_TEST_SEED.
"""
import glob
import os
import random
import re
import signal
import subprocess
import sys
import time

import harness
from harness import TRAINPROF, TrainprofTest, wait_until
from python_test import TORCH_PYTHON, Torch, torchs_python_is_at_least

COUNT = int(os.environ.get("TRAINPROF_TEST_ENDS", "12"))
SEED = int(os.environ.get("TRAINPROF_TEST_SEED", "1"))
LONGEST_S = 60 + 4 * COUNT

WITHOUT_TORCH = """
import multiprocessing, os, threading, time, trainprof
def steps(seconds=3600):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        trainprof.step()
        with trainprof.range("work"): time.sleep(0.0005)
threading.Thread(target=steps, daemon=True).start()
if os.fork() == 0:
    steps(0.3)
    os._exit(0)
print("it works", flush=True)
steps()
"""


def processes_of(run):
    """Those that were started to be recorded there, zombies aside."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as file:
                if os.fsencode("TRAINPROF_DIR=" + run) in file.read().split(b"\0"):
                    found.append(path)
        except OSError:
            pass  # gone, or another's
    return found


class Killed(TrainprofTest):
    """Needs no torch."""

    def test_killed_at_any_moment(self):
        chance = random.Random(SEED)
        for i in range(COUNT):
            number = chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
            whom = "the program" if number == signal.SIGKILL else chance.choice(["the program", "trainprof"])
            delay_s = chance.uniform(0, 0.2)
            with self.subTest("seed %d, %d: %s of %s after %.4f s" % (SEED, i, number.name, whom, delay_s)):
                self.kill(number, whom, delay_s)

    def kill(self, number, whom, delay_s):
        process = self.start("run", "-q", "-o", "run", "--force", "--", sys.executable, "-c", WITHOUT_TORCH)
        self.assertEqual(process.stdout.readline(), b"it works\n")
        children = "/proc/%d/task/%d/children" % (process.pid, process.pid)

        def program():
            with open(children, encoding="utf-8") as file:
                for pid in file.read().split():
                    with open("/proc/%s/cmdline" % pid, "rb") as command:
                        if command.read().startswith(os.fsencode(sys.executable)):
                            return int(pid)
            return None

        target = wait_until(program, "the program")
        time.sleep(delay_s)
        os.kill(target if whom == "the program" else process.pid, number)
        process.wait(timeout=harness.TIMEOUT_S)
        self.assertEqual(process.returncode, 128 + number)
        wait_until(lambda: not processes_of(self.path("run")), "its processes to end")
        exported = self.trainprof("export", "run", "-o", "trace.json", "--force")
        self.assertEqual(exported.returncode, 0, exported.stderr)


class Ends(Torch):
    def test_ends_are_the_same_at_any_moment(self):
        command = [TORCH_PYTHON, "fork_ends.py", str(SEED), str(COUNT)]
        both = []
        for prefix in ([], [TRAINPROF, "run", "--quiet", "-o", "run", "--"]):
            process = subprocess.Popen(prefix + command, cwd=self.cwd, env=self.environment(), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.end_with_the_test(process)
            both.append(process)
        plain, recorded = (process.communicate(timeout=LONGEST_S) for process in both)
        self.assertEqual([process.returncode for process in both], [0, 0], recorded[1])
        self.assertEqual(len(plain[0].splitlines()), COUNT + 1)
        self.assertNotIn("hangs", plain[0])
        self.assertTrue(plain[0].endswith("none left\n"))
        seen = recorded[0]
        if not torchs_python_is_at_least(3, 11):
            seen = re.sub(r"""'  File "[^"]*/trainprof-python/[^']*', '[^']*', """, "", seen)
        for one, other in zip(seen.splitlines(), plain[0].splitlines()):
            self.assertEqual(one, other)
        self.assertEqual(recorded[1], plain[1])
        self.assertEqual(processes_of(self.path("run")), [])


if __name__ == "__main__":
    harness.main()
