"""The stacks that `trainprof run` samples: of any Python program, whatever becomes of it."""
import ctypes
import errno
import glob
import json
import os
import shutil
import signal
import struct
import sys
import time
import unittest

import harness
from harness import TIMEOUT_S, TRAINPROF, TrainprofTest

WORK = """
import sys, time
def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))
def rest(seconds):
    time.sleep(seconds)
def main(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        busy(0.05)
        rest(0.05)
if __name__ == '__main__':
    main(float(sys.argv[1]))
"""


def forbid_process_vm_readv():
    """In this process and all that it starts, as old rules of Docker do."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
    load, jump_if_equal, ret = 0x20, 0x15, 0x06
    allow, refuse = 0x7fff0000, 0x00050000 | errno.EPERM
    rules = ((load, 0, 0, 0), (jump_if_equal, 0, 1, number), (ret, 0, 0, refuse), (ret, 0, 0, allow))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rules), ctypes.addressof(code)))
    no_new_privileges, seccomp, filtered = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filtered, program, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def give_up_rights():
    """Of root: to read processes that may not be dumped, and files whatever their mode."""
    libc = ctypes.CDLL(None)
    drop_from_bounds, rights = 24, {"DAC_OVERRIDE": 1, "DAC_READ_SEARCH": 2, "SYS_PTRACE": 19}
    for right in rights.values():
        libc.prctl(drop_from_bounds, right, 0, 0, 0)  # fails where there is none of them


def restricted_by_yama():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            return int(file.read()) > 0
    except OSError:
        return False


class Stacks(TrainprofTest):
    def stacks(self):
        """Seconds by collapsed stack, over all ranks of the only run here."""
        for old in glob.glob(self.path("x*.collapsed")):
            os.unlink(old)
        exported = self.trainprof("export", self.the_run_folder(), "-o", "x.collapsed")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        seconds = {}
        for path in glob.glob(self.path("x*.collapsed")):
            with open(path, encoding="utf-8") as file:
                for line in file:
                    stack, microseconds = line.rsplit(" ", 1)
                    seconds[stack] = seconds.get(stack, 0) + int(microseconds) / 1e6
        return seconds

    def seconds_in(self, function):
        return sum(s for stack, s in self.stacks().items() if f"{function} (" in stack)

    def test_say_where_the_time_went(self):
        result = self.trainprof("run", "--", *self.script("work.py", WORK), "3")
        self.assertEqual(result.returncode, 0, result.stderr)
        busy, rest = self.seconds_in("busy"), self.seconds_in("rest")
        self.assertAlmostEqual(busy + rest, 3, delta=0.5)
        self.assertAlmostEqual(busy, rest, delta=0.9)
        self.assertTrue(any(f"main ({self.path('work.py')}:12);busy (" in stack or
                            f"main ({self.path('work.py')}:13);busy (" in stack
                            for stack in self.stacks()))

    @unittest.skipIf(sys.version_info < (3, 11), "Python 3.10 keeps no columns")
    def test_say_what_without_python_code_a_line_calls(self):
        self.trainprof("run", "--", *self.script("work.py", WORK), "2")
        self.assertAlmostEqual(self.seconds_in("time.sleep"), self.seconds_in("rest"), delta=0.1)
        slept = [stack for stack in self.stacks() if "time.sleep (<built-in>)" in stack]
        self.assertTrue(slept)
        for stack in slept:
            self.assertTrue(stack.endswith(f";rest ({self.path('work.py')}:8);time.sleep (<built-in>)"), stack)

    @unittest.skipIf(sys.version_info < (3, 11), "Python 3.10 keeps no columns")
    def test_say_what_making_the_batches_was(self):
        result = self.trainprof("run", "-o", "run", "--", *self.script("batches.py", """
import time, trainprof, zlib
packed = zlib.compress(bytes(range(256)) * 200000)
for i in range(60):
    trainprof.step()
    with trainprof.range("data_wait"):
        raw = zlib.decompress(packed)
        end = time.perf_counter() + 0.02
        while time.perf_counter() < end: pass
    time.sleep(0.02)
"""))
        self.assertEqual(result.returncode, 0, result.stderr)
        rank = json.loads(self.trainprof("report", "run", "--format", "json").stdout)["ranks"][0]
        phases = {phase["class"]: phase for phase in rank["host_lines"]}
        wait = phases["input_wait"]
        self.assertEqual(sum(it["total_ns"] for it in wait["work"]), wait["total_ns"])
        decoding = {it["work"]: it["ms_per_step"] for it in wait["work"]}["decoding"]
        lines = {(line["line"], line.get("callee")): line["ms_per_step"] for line in wait["lines"]}
        self.assertAlmostEqual(decoding, lines[(7, "zlib.decompress")], delta=1)
        account = {line["class"]: line["ms_per_step"] for line in rank["host_account"]}
        true = account["input_wait"] - 20
        self.assertAlmostEqual(decoding, true, delta=max(0.3 * true, 3))

    def test_say_who_holds_the_interpreter_up(self):
        result = self.trainprof("run", "-o", "run", "--", *self.script("held_up.py", """
import threading, time, trainprof
def prefetch():
    while True: sum(i for i in range(1000))
threading.Thread(target=prefetch, daemon=True).start()
for i in range(150):
    trainprof.step()
    sum(i for i in range(300000))
"""))
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(self.trainprof("report", "run", "--format", "json").stdout)
        facts = {fact["id"]: fact for fact in report["ranks"][0]["host_facts"]}
        step = report["ranks"][0]["steps"]["mean_ms"]
        # Half of it on a machine of its own: on a busy one threads wait for the processor as well.
        self.assertGreater(facts["gil_wait"]["value"], 0.1 * step)
        self.assertLess(facts["gil_wait"]["value"], 0.8 * step)
        self.assertIn("mostly held_up.py:4 ", facts["gil_wait"]["text"])
        self.assertIn("waits for Python's GIL", report["verdict"])

    def test_of_an_isolated_interpreter_come_as_well(self):
        """-I keeps our hooks out; the sampler needs none."""
        python, script = self.script("work.py", WORK)
        result = self.trainprof("run", "--", python, "-I", "-S", script, "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreater(self.seconds_in("busy") + self.seconds_in("rest"), 0.6)

    def test_come_where_process_vm_readv_is_refused_to_all(self):
        result = self.trainprof("run", "--", *self.script("work.py", WORK), "2", preexec_fn=forbid_process_vm_readv)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertAlmostEqual(self.seconds_in("busy") + self.seconds_in("rest"), 2, delta=0.5)
        self.assertNotIn(b"no stacks", self.trainprof("report", self.the_run_folder(), "--format", "json").stdout)
        doctor = self.trainprof("doctor", "--format", "json", preexec_fn=forbid_process_vm_readv)
        checks = {check["id"]: check for check in json.loads(doctor.stdout)["checks"]}
        self.assertEqual(checks["python_stacks"]["state"], "ok")

    def test_come_where_a_process_may_not_be_read_and_hands_in_its_memory(self):
        """As with Yama: a program that nobody may read is one that may not be dumped, and so is its process."""
        trainprof = shutil.copy(TRAINPROF, self.path("trainprof"))
        os.chmod(trainprof, 0o111)
        script = self.script("work.py", """
import ctypes, multiprocessing, os, sys, time
def until_it_was_found():
    time.sleep(1.5)
def hide():
    set_dumpable = 4
    ctypes.CDLL(None).prctl(set_dumpable, 0, 0, 0, 0)
def hidden(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(200))
def child():
    trainprof.mark('in the child')
    until_it_was_found()
    hide()
    hidden(1.5)
print('TRAINPROF_MEMORY' in os.environ)
if sys.argv[1] == 'hand in':
    import trainprof
    trainprof.mark('in the parent')
    process = multiprocessing.get_context('fork').Process(target=child)
    process.start()
    process.join()
until_it_was_found()
hide()
hidden(1.5)
""")
        for argument, seconds in (("hand in", 3), ("do not", 0)):
            # By way of env: rights are gone when a program has been executed.
            result = self.run_plain(["env", trainprof, "run", "--force", "-o", "run", "--", *script, argument],
                                    preexec_fn=give_up_rights)
            self.assertEqual((result.returncode, result.stdout), (0, b"True\n"), result.stderr)
            exported = self.trainprof("export", "run", "--force", "-o", "x.collapsed")
            self.assertEqual(exported.returncode, 0, exported.stderr)
            stacks = [line for line in self.read("x.collapsed").decode().splitlines() if "hidden (" in line]
            self.assertAlmostEqual(sum(int(line.rsplit(" ", 1)[1]) for line in stacks) / 1e6, seconds, delta=0.6)
            self.assertEqual(len({line.split(";")[0] for line in stacks}), 2 if seconds else 0)

    @unittest.skipIf(restricted_by_yama(), "ptrace_scope lets nobody read another's child")
    def test_of_a_program_that_may_be_read_are_not_handed_in(self):
        script = self.script("ask.py", "import os; print('TRAINPROF_MEMORY' in os.environ)")
        result = self.trainprof("run", "--", *script)
        self.assertEqual(result.stdout, b"False\n")

    def test_of_a_killed_program_are_there(self):
        say = "import os\nwith open('pid', 'w') as file: print(os.getpid(), file=file)\n"
        run = self.start("run", "--", *self.script("work.py", say + WORK), "100")
        program = int(self.read_when_there("pid"))
        time.sleep(2)
        os.kill(program, signal.SIGKILL)
        run.communicate(timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, 128 + signal.SIGKILL)
        self.assertGreater(self.seconds_in("busy") + self.seconds_in("rest"), 1)

    def test_of_a_killed_supervisor_are_there(self):
        run = self.start("run", "--", *self.script("work.py", WORK), "100")
        time.sleep(2)
        run.kill()
        run.wait(timeout=TIMEOUT_S)
        self.assertGreater(self.seconds_in("busy") + self.seconds_in("rest"), 1)

    def test_of_processes_that_come_and_go_are_their_own(self):
        script = self.script("parent.py", """
import multiprocessing, sys
sys.path.insert(0, '.')
import work
def child(i):
    work.busy(1.5)
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        context = multiprocessing.get_context(method)
        for i in range(2):
            process = context.Process(target=child, args=(i,))
            process.start()
            process.join()
            assert process.exitcode == 0
""")
        self.script("work.py", WORK)
        result = self.trainprof("run", "--", *script)
        self.assertEqual(result.returncode, 0, result.stderr)
        processes = {stack.split(";")[0] for stack in self.stacks() if "busy (" in stack}
        self.assertEqual(len(processes), 4, processes)

    def test_hz_0_leaves_them_out(self):
        result = self.trainprof("run", "--stack-hz", "0", "--", *self.script("work.py", WORK), "1")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(glob.glob(os.path.join(self.the_run_folder(), "stacks-*")), [])
        exported = self.trainprof("export", self.the_run_folder(), "-o", "x.collapsed")
        self.assertNotEqual(exported.returncode, 0)
        self.assertIn(b"no samples of stacks", exported.stderr)


if __name__ == "__main__":
    harness.main()
