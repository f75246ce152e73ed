"""Signals of `trainprof run`: each reaches the program exactly as it would without us."""
import concurrent.futures
import ctypes
import fcntl
import json
import os
import pty
import resource
import signal
import subprocess
import sys
import termios
import time

import harness
from harness import SIGNAL_COUNTER, TIMEOUT_S, TrainprofTest, process_state, wait_until


class Terminal:
    """A real terminal with a program in its foreground, in a session of its own."""

    def __init__(self, test, *arguments):
        self.master, slave = pty.openpty()

        def take_the_terminal():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            os.tcsetpgrp(0, os.getpgrp())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        self.process = subprocess.Popen(
            arguments, stdin=slave, stdout=slave, stderr=slave,
            cwd=test.cwd, env=test.environment(), start_new_session=True,
            preexec_fn=take_the_terminal)
        os.close(slave)
        test.addCleanup(self.close)

    def press(self, key):
        os.write(self.master, key)

    def output(self):
        """All that was printed; call it once the job has ended."""
        text = b""
        while True:
            try:
                chunk = os.read(self.master, 65536)
            except OSError:  # the terminal's end
                return text.decode(errors="replace")
            if not chunk:
                return text.decode(errors="replace")
            text += chunk

    def close(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)


CTRL_C = b"\x03"
CTRL_Z = b"\x1a"
CTRL_BACKSLASH = b"\x1c"


def signal_waits(pid, number):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        pending = next(line for line in file if line.startswith("ShdPnd:"))
    return bool(int(pending.split()[1], 16) >> (number - 1) & 1)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


class SignalTest(TrainprofTest):
    def counter(self, limit, *flags):
        """A SIGNAL_COUNTER under trainprof: (trainprof's process, the program's pid)."""
        process = self.start("run", *flags, "--", *self.script("count.py", SIGNAL_COUNTER), str(limit))
        return process, int(self.read_when_there("pid"))

    def got(self):
        return self.read("got").decode().split()


class Kill(SignalTest):
    def test_a_signal_to_us_reaches_the_program_once(self):
        for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2"):
            with self.subTest(name):
                for old in ("pid", "got"):
                    if os.path.exists(self.path(old)):
                        os.unlink(self.path(old))
                process, _ = self.counter(1)
                process.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(process.wait(TIMEOUT_S), 42)
                self.assertEqual(self.got(), ["SIG" + name])

    def test_a_signal_to_the_program_alone_ends_us_with_its_code(self):
        process = self.start("run", "--", "sh", "-c", "echo $$ >pid; exec sleep 60")
        os.kill(int(self.read_when_there("pid")), signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT_S), 128 + signal.SIGTERM)

    def test_term_ends_a_program_without_a_handler_and_the_run_is_sealed_within_2_s(self):
        process = self.start("run", "--", "sh", "-c", "echo $$ >pid; exec sleep 60")
        self.read_when_there("pid")
        begin = time.monotonic()
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertLess(time.monotonic() - begin, 2)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assertIn(b"ended by signal 15", stderr)

    def test_what_the_program_sends_to_its_group_does_not_come_back(self):
        program = self.script("group.py", SIGNAL_COUNTER.replace(
            "end = time", "os.kill(0, signal.SIGTERM)\nend = time"))
        process = self.start("run", "--", *program, "1")
        self.assertEqual(process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.got(), ["SIGTERM"])

    def test_a_signal_to_the_whole_group_is_not_doubled(self):
        for _ in range(5):  # the witness is renewed each time
            process, _ = self.counter(2)
            os.killpg(process.pid, signal.SIGUSR1)
            wait_until(lambda: os.path.exists(self.path("got")), "the first signal")
            time.sleep(0.1)
            self.assertEqual(self.got(), ["SIGUSR1"])
            os.killpg(process.pid, signal.SIGUSR2)
            self.assertEqual(process.wait(TIMEOUT_S), 42)
            self.assertEqual(self.got(), ["SIGUSR1", "SIGUSR2"])
            os.unlink(self.path("got"))
            os.unlink(self.path("pid"))

    def test_a_signal_to_us_and_then_to_every_process_is_not_doubled(self):
        process, program = self.counter(1)
        to_all = children(process.pid)
        self.assertIn(program, to_all)
        for pid in (process.pid, *to_all):  # as Slurm and timeout do
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.got(), ["SIGTERM"])

    def test_an_interrupt_that_the_caller_ignores_stays_ignored(self):
        process = self.start("run", "--", "sh", "-c", "echo $$ >pid; sleep 0.5; exit 4",
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        self.read_when_there("pid")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT_S), 4)

    def test_killing_us_leaves_the_program_alone(self):
        process = self.start("run", "--", "sh", "-c", "echo $$ >pid; sleep 1; echo done >finished",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.read_when_there("pid")
        process.kill()
        process.wait(TIMEOUT_S)
        self.assertEqual(self.read_when_there("finished"), "done")
        self.assertTrue(os.path.exists(os.path.join(self.the_run_folder(), "manifest.json")))


# A program that blocks all signals and writes each that it takes, by its number; -1 is the end.
TAKES_ALL = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
everything = ctypes.c_uint64(2 ** 64 - 1)
RT_SIGPROCMASK, RT_SIGTIMEDWAIT = {"x86_64": (14, 128), "aarch64": (135, 137)}[os.uname().machine]
libc.syscall(RT_SIGPROCMASK, 2, ctypes.byref(everything), None, 8)
info = ctypes.create_string_buffer(128)
with open("taken", "w") as file:
    with open("pid", "w") as ready: ready.write(str(os.getpid()) + "\\n")
    while True:
        number = libc.syscall(RT_SIGTIMEDWAIT, ctypes.byref(everything), info, None, 8)
        if number == int(sys.argv[1]): sys.exit(42)
        file.write(f"{number} {int.from_bytes(info.raw[24:28], 'little')}\\n")
        file.flush()
"""
# What stops a process cannot be passed on, and CHLD and CONT have a meaning of their own.
NOT_PASSED_ON = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
                 signal.SIGCHLD, signal.SIGCONT}
PASSED_ON = [number for number in range(1, 65) if number not in NOT_PASSED_ON]
HARMLESS = {signal.SIGURG, signal.SIGWINCH}


class EveryNumber(SignalTest):
    """Whatever kill(1) can send."""

    def setUp(self):
        super().setUp()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs us by nohup ignores it

    def test_each_reaches_a_program_that_takes_it(self):
        last = signal.SIGTERM
        process = self.start("run", "--", *self.script("takes.py", TAKES_ALL), str(int(last)))
        self.read_when_there("pid")
        sent = [number for number in PASSED_ON if number != last]
        for count, number in enumerate(sent, 1):
            os.kill(process.pid, number)
            wait_until(lambda: self.read("taken").count(b"\n") >= count, f"signal {number}")
        process.send_signal(last)
        self.assertEqual(process.wait(TIMEOUT_S), 42)
        self.assertEqual([int(line.split()[0]) for line in self.read("taken").splitlines()], sent)

    def test_real_time_signals_are_queued_and_keep_their_value(self):
        process = self.start("run", "--", *self.script("takes.py", TAKES_ALL), str(int(signal.SIGTERM)))
        self.read_when_there("pid")
        libc = ctypes.CDLL(None, use_errno=True)
        for value in (7, 8, 9):
            self.assertEqual(libc.sigqueue(process.pid, 40, ctypes.c_void_p(value)), 0)
        wait_until(lambda: self.read("taken").count(b"\n") >= 3, "three signals")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.read("taken"), b"40 7\n40 8\n40 9\n")

    def test_each_ends_a_program_that_does_not_and_the_run_is_sealed(self):
        def run(number):
            folder = self.path(f"run-{number}")
            ready = self.path(f"ready-{number}")
            process = self.start("run", "--no-report", "-o", folder, "--", "sh", "-c",
                                 f"echo >{ready}; exec sleep 60")
            wait_until(lambda: os.path.exists(ready), f"the program for {number}")
            os.kill(process.pid, number)
            _, card = process.communicate(timeout=TIMEOUT_S)
            with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
                return process.returncode, b"recorded:" in card, json.load(file).get("signal")
        fatal = [number for number in PASSED_ON if number not in HARMLESS]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for number, ended in zip(fatal, pool.map(run, fatal)):
                self.assertEqual(ended, (128 + number, True, number))

    def test_an_alarm_of_whoever_executed_us_is_the_programs(self):
        # It is a timer of the program's own, which it can look at and stop.
        script = self.script("own.py", "import signal, sys\nsys.exit(42 if signal.alarm(0) else 1)\n")
        ended = self.run_plain([sys.executable, "-c", "import os, signal, sys\nsignal.alarm(50)\n"
                                "os.execv(sys.argv[1], sys.argv[1:])",
                                harness.TRAINPROF, "run", "--", *script])
        self.assertEqual(ended.returncode, 42, ended.stderr)

    def test_the_program_starts_with_the_mask_and_the_dispositions_that_we_had(self):
        def become():
            for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGALRM, signal.SIGRTMAX):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGSEGV, signal.SIGRTMIN})
        show = ["grep", "^Sig[^Q]", "/proc/self/status"]
        self.assertEqual(self.trainprof("run", "--", *show, preexec_fn=become).stdout,
                         self.run_plain(show, preexec_fn=become).stdout)


class Keyboard(SignalTest):
    """Keys of a real terminal, which signals the whole foreground group."""

    def counter(self, limit, *flags):
        terminal = Terminal(self, harness.TRAINPROF, "run", *flags, "--", *self.script("count.py", SIGNAL_COUNTER),
                            str(limit))
        return terminal, int(self.read_when_there("pid"))

    def test_ctrl_c_reaches_the_program_once_and_the_card_is_printed(self):
        terminal, _ = self.counter(1)
        terminal.press(CTRL_C)
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.got(), ["SIGINT"])
        self.assertIn("dropped: 0", terminal.output())

    def test_ctrl_backslash_reaches_the_program_once(self):
        terminal, _ = self.counter(1)
        terminal.press(CTRL_BACKSLASH)
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.got(), ["SIGQUIT"])

    def test_a_second_ctrl_c_skips_finalising(self):
        terminal, _ = self.counter(2)
        terminal.press(CTRL_C)
        wait_until(lambda: os.path.exists(self.path("got")), "the first SIGINT")
        time.sleep(0.05)  # it is sent to all of the group: we have it too, or it waits for us
        wait_until(lambda: not signal_waits(terminal.process.pid, signal.SIGINT), "our SIGINT")
        terminal.press(CTRL_C)  # earlier, the two might be one to us: signals do not queue
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 42)
        self.assertEqual(self.got(), ["SIGINT", "SIGINT"])
        output = terminal.output()
        self.assertIn("left unsealed, and can be read as it is: trainprof report /", output)
        self.assertNotIn("dropped:", output)

    def test_a_program_without_a_handler_dies_of_ctrl_c(self):
        terminal = Terminal(self, harness.TRAINPROF, "run", "--", "sh", "-c", "echo $$ >pid; exec sleep 60")
        self.read_when_there("pid")
        terminal.press(CTRL_C)
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 128 + signal.SIGINT)


# A shell with one job, in the foreground or not: job control needs one, since the kernel does not
# stop a group whose parent is outside the session. Notes "stopped" each time the job stops, then
# waits for the file "fg", which says whom to continue: the group, or trainprof or the program alone.
SHELL = """
import os, signal, sys, time
foreground = sys.argv[1] == "foreground"
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    if foreground: os.tcsetpgrp(0, os.getpgrp())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execvp(sys.argv[2], sys.argv[2:])
while True:
    _, status = os.waitpid(job, os.WUNTRACED)
    if not os.WIFSTOPPED(status): break
    with open("stopped", "w") as file: file.write(str(job) + "\\n")
    while not os.path.exists("fg"): time.sleep(0.01)
    if foreground: os.tcsetpgrp(0, job)
    if open("fg").read() == "group": os.killpg(job, signal.SIGCONT)
    else: os.kill(job, signal.SIGCONT)
sys.exit(os.waitstatus_to_exitcode(status))
"""


class JobControl(SignalTest):
    def job(self, where, program):
        shell = self.script("shell.py", SHELL)
        terminal = Terminal(self, *shell, where, harness.TRAINPROF, "run", "--", "sh", "-c", program)
        return terminal, int(self.read_when_there("pid"))

    def continue_(self, whom):
        with open(self.path("new"), "w", encoding="utf-8") as file:
            file.write(whom)
        os.rename(self.path("new"), self.path("fg"))

    def test_ctrl_z_stops_both_and_fg_continues_both(self):
        terminal, pid = self.job(
            # No child of its own: a shell that forks when the key comes waits in state D instead.
            "foreground", "mkfifo go; echo $$ >pid; read line <go; exit 5")
        terminal.press(CTRL_Z)
        self.read_when_there("stopped")
        wait_until(lambda: process_state(pid) == "T", "the program to stop")
        self.continue_("group")
        with open(self.path("go"), "wb") as go:
            go.write(b"on\n")
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 5)

    def test_a_program_that_stops_itself_alone_gives_the_terminal_back(self):
        terminal, pid = self.job("foreground", "echo $$ >pid; kill -TSTP $$; exit 6")
        self.read_when_there("stopped")
        self.assertEqual(process_state(pid), "T")
        self.continue_("trainprof alone")  # which continues the program
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 6)

    def test_in_the_background_others_may_stop_and_continue_the_program_alone(self):
        terminal, pid = self.job("background", "echo $$ >pid; sleep 0.5; exit 7")
        for stop in (signal.SIGSTOP, signal.SIGTSTP):
            os.kill(pid, stop)
            wait_until(lambda: process_state(pid) == "T", "the program to stop")
            time.sleep(0.2)
            os.kill(pid, signal.SIGCONT)
            wait_until(lambda: process_state(pid) != "T", "the program to go on")
        self.assertEqual(terminal.process.wait(TIMEOUT_S), 7)
        self.assertFalse(os.path.exists(self.path("stopped")))


if __name__ == "__main__":
    harness.main()
