#!/usr/bin/env python3
"""What a user sees while a large trace is read: a line of progress on a terminal, nothing elsewhere,
and an end within a moment of Ctrl-C. Python's standard library alone.

Environment: TRAINPROF, the program.
"""
import fcntl
import gzip
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import time
import unittest

TRAINPROF = os.environ["TRAINPROF"]
TIMEOUT_S = 120
MIB = 1 << 20
EVENT = b'{"ph":"X","name":"a","cat":"cpu_op","pid":1,"tid":1,"ts":1,"dur":1}'


class Progress(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("TRAINPROF")}

    def trace(self, spaces_mib):
        """A trace of one event behind so many megabytes of spaces, as gzip members: small on disk."""
        path = os.path.join(self.folder, "trace.json.gz")
        member = gzip.compress(b" " * (16 * MIB), 1)
        with open(path, "wb") as file:
            file.write(gzip.compress(b'{"schemaVersion":1,"traceEvents":['))
            for _ in range(spaces_mib // 16):
                file.write(member)
            file.write(gzip.compress(EVENT + b"]}"))
        return path

    def start_on_terminal(self, *arguments):
        """The program with a terminal as its standard error and controlling terminal."""
        master, slave = os.openpty()
        self.addCleanup(os.close, master)

        def take_terminal():
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            signal.signal(signal.SIGINT, signal.SIG_DFL)

        program = subprocess.Popen([TRAINPROF, *arguments], stdin=slave, stdout=subprocess.PIPE,
                                   stderr=slave, env=self.environment, preexec_fn=take_terminal)
        os.close(slave)
        self.addCleanup(lambda: program.poll() is None and program.kill())
        self.addCleanup(program.stdout.close)
        return program, master

    def read_terminal(self, master, until=None):
        """Its text up to `until`, or up to the program's end."""
        text, end = "", time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            if until is not None and re.search(until, text):
                return text
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(master, 4096)
            except OSError:  # the program has ended
                return text
            text += chunk.decode()
        raise AssertionError(f"no {until or 'end'} in {TIMEOUT_S} s; the terminal shows {text[-500:]!r}")

    def test_shows_rate_and_time_left_on_a_terminal_and_clears_the_line(self):
        out = os.path.join(self.folder, "out.json")
        program, master = self.start_on_terminal("export", self.trace(2048), "-o", out)
        text = self.read_terminal(master)
        self.assertEqual(program.wait(TIMEOUT_S), 0, text)
        self.assertRegex(text, r"reading trace\.json\.gz: \d+ %, \d+ MB/s, .*, \d+ s left")
        self.assertTrue(text.endswith("\r\x1b[K"), repr(text[-200:]))

    def test_is_silent_where_there_is_no_terminal(self):
        out = os.path.join(self.folder, "out.json")
        done = subprocess.run([TRAINPROF, "export", self.trace(1024), "-o", out], capture_output=True,
                              text=True, env=self.environment, timeout=TIMEOUT_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_ctrl_c_ends_the_import_with_130_and_a_clean_line(self):
        # 16 GiB of text: many seconds of work that Ctrl-C must cut short.
        program, master = self.start_on_terminal("analyze", self.trace(16 * 1024))
        self.read_terminal(master, until=r"MB/s")
        os.write(master, b"\x03")
        start = time.monotonic()
        text = self.read_terminal(master)
        self.assertEqual(program.wait(TIMEOUT_S), 130, text)
        self.assertLess(time.monotonic() - start, 10)
        self.assertRegex(text.rsplit("\x1b[K", 1)[1],
                         r"^trainprof analyze: .*trace\.json\.gz: cancelled\r\n$")
        self.assertEqual(program.stdout.read(), b"")

    def test_ctrl_c_ends_a_folder_of_traces_too(self):
        self.trace(16 * 1024)
        with open(os.path.join(self.folder, "zz.json"), "wb") as file:
            file.write(b"[" + EVENT + b"]")
        program, master = self.start_on_terminal("analyze", self.folder)
        self.read_terminal(master, until=r"MB/s")
        os.write(master, b"\x03")
        text = self.read_terminal(master)
        self.assertEqual(program.wait(TIMEOUT_S), 130, text)
        self.assertIn("cancelled", text)

    def test_ctrl_c_ends_a_merge_and_leaves_nothing_behind(self):
        out = os.path.join(self.folder, "out")
        os.mkdir(out)
        program, master = self.start_on_terminal("export", self.trace(16 * 1024), "--merge", "-o",
                                                 os.path.join(out, "job.json"))
        self.read_terminal(master, until=r"MB/s")
        os.write(master, b"\x03")
        text = self.read_terminal(master)
        self.assertEqual(program.wait(TIMEOUT_S), 130, text)
        self.assertIn("cancelled", text)
        self.assertEqual(os.listdir(out), [])

    def test_files_are_exported_under_the_ranks_in_their_names(self):
        for name in ("a_rank0.json", "b_rank1.json"):
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(b"[" + EVENT + b"]")
        out = os.path.join(self.folder, "out")
        os.mkdir(out)
        done = subprocess.run([TRAINPROF, "export", self.folder, "-o", os.path.join(out, "t.json")],
                              capture_output=True, text=True, env=self.environment, timeout=TIMEOUT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(out)), ["t-rank0.json", "t-rank1.json"])


if __name__ == "__main__":
    unittest.main()
