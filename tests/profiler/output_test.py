"""What the commands write, and where to: devices, FIFOs and links stay what they are, half a file is
never left, and nothing of a trace reaches a terminal as a command to it."""
import json
import os
import pty
import resource
import select
import signal
import stat
import subprocess
import time

import harness
from harness import TIMEOUT_S, TRAINPROF, TrainprofTest, wait_until
from traces import named

# A title, a cleared screen, C1 as UTF-8 and as a byte, a bidi override, a line that is none of ours.
EVIL = "k\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e\nFORGED: a line"


class OutputTest(TrainprofTest):
    def setUp(self):
        super().setUp()
        self.trace = os.path.join(self.folder, "t.json")
        with open(self.trace, "w", encoding="ascii") as file:
            json.dump(named(), file)

    # Each writes to the file it is given.
    def writers(self, name):
        return (["report", self.trace, "--format", f"json={name}"],
                ["check", self.trace, "--exit-zero", "--format", f"json={name}"],
                ["export", self.trace, "--force", "-o", name],
                ["export", self.trace, "--force", "--merge", "-o", name])


class Outputs(OutputTest):
    def test_a_full_device_is_74_and_stays_a_device(self):
        for name in ("full.json", "full.json.gz"):
            os.symlink("/dev/full", self.path(name))
            for command in self.writers(name):
                result = self.trainprof(*command)
                self.assertEqual(result.returncode, 74, command)
                self.assertIn(f"{name}: writing failed".encode(), result.stderr)
                self.assertIn(b"No space left on device", result.stderr)
            self.assertTrue(os.path.islink(self.path(name)))
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_standard_output_by_name_is_a_pipe_like_any_other(self):
        for name in ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):
            report = self.trainprof("report", self.trace, "--format", f"json={name}")
            self.assertRegex(json.loads(report.stdout)["schema_version"], r"^1\.\d+$")
            export = self.trainprof("export", self.trace, "-o", name)
            self.assertEqual((export.returncode, export.stderr), (0, b""))
            self.assertEqual(len(json.loads(export.stdout)["traceEvents"]) > 10, True)
        self.assertTrue(os.path.islink("/dev/stdout"))

    def test_standard_output_by_name_goes_on_where_others_wrote(self):
        with open(self.path("all"), "wb") as out:
            out.write(b"before\n")
            out.flush()
            result = self.trainprof_to(out, "report", self.trace, "--format", "json=/dev/stdout", "--format", "text")
        self.assertEqual(result.returncode, 0)
        text = self.read("all")
        self.assertTrue(text.startswith(b"before\n{"))
        self.assertIn(b"}\n" + self.trace.encode(), text)

    def trainprof_to(self, out, *arguments):
        return subprocess.run([TRAINPROF, *arguments], stdout=out, stderr=subprocess.PIPE, cwd=self.cwd,
                              env=self.environment(), timeout=TIMEOUT_S, check=False)

    def test_a_fifo_is_written_into(self):
        os.mkfifo(self.path("fifo.json"))
        for command in self.writers("fifo.json"):
            reader = subprocess.Popen(["cat", self.path("fifo.json")], stdout=subprocess.PIPE)
            self.end_with_the_test(reader)
            result = self.trainprof(*command)
            self.assertEqual(result.returncode, 0, result.stderr)
            json.loads(reader.communicate(timeout=TIMEOUT_S)[0])
        self.assertTrue(stat.S_ISFIFO(os.stat(self.path("fifo.json")).st_mode))

    def test_a_stream_takes_one_rank(self):
        folder = os.path.join(self.folder, "ranks")
        os.mkdir(folder)
        for rank in (0, 1):
            with open(os.path.join(folder, f"rank{rank}.json"), "w", encoding="ascii") as file:
                json.dump(named(rank=rank), file)
        result = self.trainprof("export", folder, "-o", "/dev/null")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"add --rank N or --merge", result.stderr)
        self.assertFalse(os.path.exists("/dev/null-rank0"))
        self.assertEqual(self.trainprof("export", folder, "--merge", "-o", "/dev/null").returncode, 0)

    def test_a_link_stays_and_its_target_is_replaced(self):
        for number, command in enumerate(self.writers("link.json")):
            with open(self.path("real.json"), "w", encoding="ascii") as file:
                file.write(f"before {number}")
            with_link = self.path("link.json")
            if not os.path.islink(with_link):
                os.symlink("real.json", with_link)
            self.assertEqual(self.trainprof(*command).returncode, 0)
            self.assertEqual(os.readlink(with_link), "real.json")
            json.loads(self.read("real.json"))

    def test_errors_say_what_where_and_what_to_do_before_the_work(self):
        os.mkdir(self.path("folder.json"))
        for name, what in (("no/such/a.json", "the folder no/such does not exist; create it first"),
                           ("folder.json", "it is a folder; name a file in it")):
            for command in self.writers(name):
                result = self.trainprof(*command)
                self.assertEqual(result.returncode, 74, command)
                self.assertEqual(result.stderr.decode(),
                                 f"trainprof {command[0]}: {name}: cannot be written: {what}\n")
        self.assertEqual(os.listdir(self.cwd), ["folder.json"])

    def test_past_the_limit_on_file_sizes_nothing_stays(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        for name in ("a.json",):
            for command in self.writers(name):
                result = self.trainprof(*command, preexec_fn=limit)
                self.assertEqual(result.returncode, 74, command)
                self.assertIn(b"ulimit -f", result.stderr)
        with open(self.path("out"), "wb") as out:
            result = subprocess.run([TRAINPROF, "report", self.trace], stdout=out, stderr=subprocess.PIPE, check=False,
                                    timeout=TIMEOUT_S, env=self.environment(), preexec_fn=limit)
        self.assertEqual(result.returncode, 74)
        self.assertEqual(os.listdir(self.cwd), ["out"])

    def test_standard_output_that_takes_nothing_is_74(self):
        for command in (["report", self.trace], ["check", self.trace], ["doctor"], ["--help"], ["help", "report"],
                        ["--version"]):
            with open("/dev/full", "wb") as full:
                result = self.trainprof_to(full, *command)
            self.assertEqual(result.returncode, 74, command)
            self.assertIn(b"standard output: writing failed: No space left on device", result.stderr)

    def test_signals_while_it_waits_to_write_end_it_and_leave_nothing(self):
        os.mkfifo(self.path("fifo.json"))
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            for command in self.writers("fifo.json"):
                process = self.start(*command)
                wait_until(lambda p=process, n=number: harness.catches(p.pid, n), "its handler")
                time.sleep(0.2)  # for it to wait for the FIFO's other end
                process.send_signal(number)
                self.assertEqual(process.wait(TIMEOUT_S), code, command)
        self.assertEqual(os.listdir(self.cwd), ["fifo.json"])

    def test_ctrl_c_while_it_writes_a_file_leaves_nothing(self):
        big = named()
        big["traceEvents"] *= 20_000  # writing them takes some tenths of a second
        with open(self.trace, "w", encoding="ascii") as file:
            json.dump(big, file)
        for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)):
            self.assertEqual(self.code_of_interrupted_export(number), code)
            self.assertEqual(os.listdir(self.cwd), [])

    def code_of_interrupted_export(self, number):
        for _ in range(5):
            process = self.start("export", self.trace, "-o", "out.json")
            wait_until(lambda p=process: os.listdir(self.cwd) or p.poll() is not None, "the half-written file")
            process.send_signal(number)
            code = process.wait(TIMEOUT_S)
            if not os.path.exists(self.path("out.json")):
                return code
            os.remove(self.path("out.json"))  # it was whole before the signal came
        return self.fail("the export was never interrupted")

    def test_an_ignored_interrupt_stays_ignored(self):
        os.mkfifo(self.path("fifo.json"))
        process = self.start("export", self.trace, "-o", "fifo.json",
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        wait_until(lambda: harness.catches(process.pid, signal.SIGTERM), "its handlers")
        process.send_signal(signal.SIGINT)
        with open(self.path("fifo.json"), "rb") as reader:
            json.load(reader)
        self.assertEqual(process.wait(TIMEOUT_S), 0)


class Terminal(OutputTest):
    def setUp(self):
        super().setUp()
        self.evil = os.path.join(self.folder, "evil\x1b[31m\n\u202e.json")
        with open(self.evil, "w", encoding="ascii") as file:
            json.dump(named(EVIL), file)

    def on_terminal(self, *arguments):
        """What a terminal gets from standard output and error."""
        master, slave = pty.openpty()
        self.addCleanup(os.close, master)
        environment = self.environment(TERM="xterm-256color")
        process = subprocess.Popen([TRAINPROF, *arguments], stdin=slave, stdout=slave, stderr=slave, cwd=self.cwd,
                                   env=environment)
        self.end_with_the_test(process)
        os.close(slave)
        text, end = b"", time.monotonic() + TIMEOUT_S
        while time.monotonic() < end:
            if not select.select([master], [], [], 1)[0]:
                continue
            try:
                text += os.read(master, 65536)
            except OSError:  # the program has ended
                break
        process.wait(TIMEOUT_S)
        return text

    def assert_harmless(self, text, what):
        self.assertNotIn(b"evil\x1b[31m", text)  # of the file's name
        for ours in (b"\x1b[0m", b"\x1b[1m", b"\x1b[36m", b"\x1b[31m", b"\x1b[33m", b"\r\x1b[K"):
            text = text.replace(ours, b"")
        text = text.replace(b"\r\n", b"\n")  # by the terminal
        text = text.decode()  # fails where a stray byte is left
        bad = [c for c in text if (ord(c) < 0x20 and c not in "\n\t") or 0x7f <= ord(c) <= 0x9f
               or 0x202a <= ord(c) <= 0x202e]
        self.assertEqual(bad, [], what)
        return text

    def test_no_command_gets_through_from_names_or_paths(self):
        for command in (["report", self.evil], ["analyze", self.evil, "--format", "json"], ["check", self.evil],
                        ["export", self.evil, "-o", "x.json"], ["report", self.evil + "no"],
                        ["report", self.evil, "--format", "text=" + self.evil + "/x"], ["bad\x1b[2J\n"],
                        ["report", "--bad\x9b\x1b[2J"], ["run", "-o", self.evil, "--", "true"],
                        ["run", "-o", "ok" + EVIL, "--", "sh", "-c", "#" + EVIL],
                        ["run", "--", "./no" + EVIL], ["doctor", "-o", "no\x1b[2J"]):
            text = self.assert_harmless(self.on_terminal(*command), command)
            self.assertEqual([line for line in text.splitlines() if line.lstrip().startswith("FORGED")], [], command)

    def test_the_report_in_a_file_is_as_harmless(self):
        self.assertEqual(self.trainprof("report", self.evil, "--format", "text=r.txt").returncode, 0)
        self.assertIn("k\\x1b]0;pwned", self.assert_harmless(self.read("r.txt"), "r.txt"))

    def test_json_says_the_name_as_it_is_in_escapes(self):
        result = self.trainprof("report", self.evil, "--format", "json")
        self.assert_harmless(result.stdout, "json")
        self.assertEqual(json.loads(result.stdout)["ranks"][0]["devices"][0]["name"], EVIL)

    def test_colours_are_ours_alone(self):
        text = self.on_terminal("report", self.evil)
        self.assertIn(b"\x1b[1mVERDICT\x1b[0m", text)
        self.assertNotIn(b"evil\x1b[31m", text)  # of the file's name


if __name__ == "__main__":
    harness.main()
