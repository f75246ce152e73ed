"""PATHs that are no plain file: pipes and FIFOs are read, what holds no trace is refused, nothing
hangs, and the first Ctrl-C ends every wait."""
import contextlib
import gzip
import json
import os
import pty
import signal
import socket
import subprocess
import time

import harness
from harness import TIMEOUT_S, TrainprofTest, wait_until
from traces import named

TEXT = json.dumps(named()).encode()


class Inputs(TrainprofTest):
    def report(self, *arguments, code=0, **options):
        result = self.trainprof(*arguments, **options)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def put(self, name, content):
        with open(self.path(name), "wb") as file:
            file.write(content)
        return self.path(name)

    def test_a_trace_comes_through_a_pipe_plain_or_gzip(self):
        expected = json.loads(self.report("report", self.put("t.json", TEXT), "--format", "json").stdout)
        for content in (TEXT, gzip.compress(TEXT)):
            for name in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
                got = json.loads(self.report("report", name, "--format", "json", input=content).stdout)
                self.assertEqual(got["input"]["path"], name)
                self.assertEqual(got["verdict"], expected["verdict"])
                self.assertEqual(got["ranks"][0]["steps"], expected["ranks"][0]["steps"])

    def test_each_command_takes_it(self):
        checked = self.report("check", self.put("t.json", TEXT), "--exit-zero").stdout
        self.assertIn(b"TP203", checked)
        self.assertEqual(self.report("check", "/dev/stdin", "--exit-zero", input=TEXT).stdout, checked)
        exported = self.report("export", "/dev/stdin", "-o", "/dev/stdout", input=TEXT).stdout
        self.assertGreater(len(json.loads(exported)["traceEvents"]), 10)
        refused = self.report("export", "/dev/stdin", "--merge", "-o", "a.json", input=TEXT, code=2)
        self.assertIn(b"can be read only once", refused.stderr)

    def test_a_file_and_a_socket_as_standard_input(self):
        with open(self.put("t.json", TEXT), "rb") as file:
            self.report("report", "/dev/stdin", stdin=file)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.sendall(TEXT)
            ours.shutdown(socket.SHUT_WR)
            self.report("report", "/dev/stdin", stdin=theirs)

    def test_a_fifo_whose_writer_comes_late_and_slowly(self):
        os.mkfifo(self.path("fifo"))
        process = self.start("report", "fifo", "--format", "json")
        wait_until(lambda: harness.has_open(process.pid, self.path("fifo")), "the reader")
        with open(self.path("fifo"), "wb", buffering=0) as writer:
            for begin in range(0, len(TEXT), len(TEXT) // 4):
                writer.write(TEXT[begin:begin + len(TEXT) // 4])
                time.sleep(0.1)
        out = process.communicate(timeout=TIMEOUT_S)[0]
        self.assertEqual(process.returncode, 0)
        self.assertEqual(json.loads(out)["ranks"][0]["steps"]["count"], 5)

    def test_the_first_ctrl_c_ends_every_wait(self):
        os.mkfifo(self.path("fifo"))
        for written in (None, b"", b'{"traceEvents":[', gzip.compress(TEXT)[:20]):
            for command in (["report", "fifo"], ["check", "fifo"], ["export", "fifo", "-o", "x.json"]):
                process = self.start(*command)
                wait_until(lambda p=process: harness.has_open(p.pid, self.path("fifo")), "the reader")
                # `None`: nobody ever opens it for writing.
                with (open(self.path("fifo"), "wb", buffering=0) if written is not None
                      else contextlib.nullcontext()) as writer:
                    if written:
                        writer.write(written)
                    wait_until(lambda p=process: harness.catches(p.pid, signal.SIGINT), "its handler")
                    process.send_signal(signal.SIGINT)
                    self.assertEqual(process.wait(TIMEOUT_S), 130, (command, written))
                    self.assertEqual(process.stderr.read().decode(), f"trainprof {command[0]}: fifo: cancelled\n")
        self.assertEqual(os.listdir(self.cwd), ["fifo"])

    def test_what_holds_no_trace_is_refused_in_words(self):
        os.symlink("loop", self.path("loop"))
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self.path("socket"))
            for name, what in (("loop", "levels of symbolic links"), ("socket", "is a socket"),
                               ("/dev/zero", "not a trace that trainprof knows"), ("/dev/null", "the file is empty"),
                               ("/proc/self/status", "not a trace that trainprof knows"),
                               ("/proc/self/mem", "Input/output error"), ("/dev/fd/4711", "no such file")):
                for command in (["report", name], ["check", name], ["export", name, "-o", "a.json"]):
                    self.assertIn(what, self.report(*command, code=4).stderr.decode(), command)

    def test_standard_input_on_a_terminal_is_refused(self):
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        result = self.report("report", "/dev/stdin", stdin=slave, code=4)
        self.assertIn(b"is a terminal", result.stderr)

    def test_a_folder_with_special_files_and_a_loop_reads_its_traces(self):
        self.put("t.json", TEXT)
        os.mkfifo(self.path("a.json"))
        os.symlink(".", self.path("loop"))
        os.symlink("gone", self.path("b.json"))
        os.symlink("/dev/zero", self.path("c.json"))
        self.report("report", self.cwd)
        self.report("report", self.path("loop/loop/loop"))

    def test_ctrl_c_ends_an_endless_trace(self):
        process = self.start("report", "/dev/stdin", stdin=subprocess.PIPE, bufsize=0)
        process.stdin.write(b'{"traceEvents":[')
        os.set_blocking(process.stdin.fileno(), False)

        def flooded():
            with contextlib.suppress(BlockingIOError):
                process.stdin.write(b" " * 65536)
            return process.poll() is not None or time.monotonic() > end
        end = time.monotonic() + 0.5
        wait_until(flooded, "half a second of spaces")
        wait_until(lambda: harness.catches(process.pid, signal.SIGINT), "its handler")
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(TIMEOUT_S), 130)


if __name__ == "__main__":
    harness.main()
