"""`trainprof run --check` and `run --report`: the recording, the gate and the reports in one command."""
import json
import os
import signal
import sys
import time

import harness
from harness import TrainprofTest

# Steps of which the wait for input is most; no torch.
PROGRAM = """
import time, trainprof
print("the program's own line")
for i in range(24):
    with trainprof.range("step"):
        with trainprof.range("data_wait"):
            time.sleep(0.004)
        time.sleep(0.001)
raise SystemExit(%d)
"""
POLICY = "schema = 1\n[budgets.step_time_ms]\nmax = %g\n"


class RunCheckTest(TrainprofTest):
    def put(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content)

    def run_it(self, *flags, code=0):
        self.put("train.py", PROGRAM % code)
        return self.trainprof("run", "-o", "rec", "--force", *flags, "--", sys.executable, "-B", "train.py")


class Gate(RunCheckTest):
    def test_it_passes_fails_and_is_inconclusive_as_check_is(self):
        for limit, expected, word in ((1e6, 0, b"PASS"), (0.1, 1, b"FAIL")):
            with self.subTest(limit):
                self.put(".trainprof.toml", POLICY % limit + "[rules.TP101]\nseverity = 'warning'\n")
                result = self.run_it("--check")
                self.assertEqual(result.returncode, expected, result.stderr)
                self.assertEqual(result.returncode, self.trainprof("check", "rec").returncode)
                self.assertIn(word, result.stderr)
                self.assertEqual(result.stdout, b"the program's own line\n")
        os.unlink(self.path(".trainprof.toml"))
        for limit, expected in (("1e6", 0), ("0.1", 1)):
            flags = ("--check", "--fail-on", "never", "--budget", "step_time_ms=" + limit)
            self.assertEqual(self.run_it(*flags).returncode, expected)
        self.put(".trainprof.toml", "schema = 1\n[budgets.peak_gpu_memory]\nmax = 1\n[rules.TP101]\nseverity = 'off'\n")
        self.assertEqual(self.run_it("--check").returncode, 3)
        self.assertEqual(self.run_it("--check", "--allow-inconclusive").returncode, 0)

    def test_the_programs_own_failure_comes_first(self):
        self.put(".trainprof.toml", POLICY % 0.1)
        result = self.run_it("--check", code=7)
        self.assertEqual(result.returncode, 7)
        self.assertIn(b"FAIL", result.stderr)

    def test_nothing_recorded_is_never_green(self):
        env = self.environment()
        env["NVTX_INJECTION64_PATH"] = "/other/tool.so"
        self.put("train.py", PROGRAM % 0)
        result = self.trainprof("run", "--check", "--", sys.executable, "train.py", env=env)
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertEqual(result.stdout, b"")
        # Recorded, but nothing of a training run.
        self.assertEqual(self.trainprof("run", "--check", "--", "true").returncode, 3)

    def test_mistakes_are_found_before_the_program_starts(self):
        self.put("bad.toml", "schema = 1\nfial-on = 'error'\n")
        for flags, said in ((("--check", "--config", "bad.toml"), b"bad.toml:2"),
                            (("--check", "--config", "none.toml"), b"none.toml"),
                            (("--check", "--baseline", "none.json"), b"none.json"),
                            (("--config", "bad.toml"), b"go with --check"),
                            (("--budget", "step_time_ms=1"), b"go with --check"),
                            (("--check", "--budget", "step_tim_ms=1"), b"did you mean 'step_time_ms'"),
                            (("--report", "jsno"), b"did you mean 'json'"),
                            (("--report", "json=/nor/there/r.json"), b"/nor/there"),
                            (("--report", "json=-"), b"standard output is the program's")):
            with self.subTest(flags):
                result = self.run_it(*flags)
                self.assertEqual(result.returncode, 125, result.stderr)
                self.assertIn(said, result.stderr)
                self.assertEqual(result.stdout, b"")
                self.assertFalse(os.path.exists(self.path("rec")))

    def test_ctrl_c_ends_the_program_and_is_its_code(self):
        self.put("train.py", "import time\nprint('up', flush=True)\ntime.sleep(60)\n")
        process = self.start("run", "--check", "--", sys.executable, "train.py")
        self.assertEqual(process.stdout.readline(), b"up\n")
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)

    def test_who_presses_ctrl_c_twice_has_no_green_gate(self):
        self.put("train.py", "import signal, time\nleft = []\nsignal.signal(signal.SIGINT, lambda *_: left.append(1))\n"
                 "print('up', flush=True)\nwhile len(left) < 2: time.sleep(0.01)\n")
        process = self.start("run", "--check", "--", sys.executable, "train.py")
        self.assertEqual(process.stdout.readline(), b"up\n")
        for _ in range(2):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.3)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 125)


class Reports(RunCheckTest):
    def test_a_folder_with_a_slash_is_the_same_folder(self):
        self.put("train.py", PROGRAM % 0)
        result = self.trainprof("run", "-o", "rec/", "--report", "json", "--", sys.executable, "-B", "train.py")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(os.path.exists(self.path("rec.json")), result.stderr)

    def test_each_is_written_where_it_is_asked_for_and_named(self):
        result = self.run_it("--report", "json", "--report", "markdown=out.md")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(b"rec.json\n", result.stderr)
        self.assertIn(b"out.md\n", result.stderr)
        with open(self.path("rec.json"), encoding="utf-8") as file:
            report = json.load(file)
        again = json.loads(self.trainprof("report", "rec", "--format", "json").stdout)
        self.assertEqual(report["ranks"][0]["steps"], again["ranks"][0]["steps"])
        with open(self.path("out.md"), encoding="utf-8") as file:
            self.assertIn("trainprof", file.read())

    def test_with_the_gate_they_show_what_it_says(self):
        self.put(".trainprof.toml", POLICY % 0.1)
        result = self.run_it("--check", "--report", "json", "-q")
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertNotIn(b"trainprof: report", result.stderr)
        with open(self.path("rec.json"), encoding="utf-8") as file:
            self.assertEqual(json.load(file)["gate"]["result"], "fail")


class Trainer(RunCheckTest):
    """The reference trainer, a C++ program that knows nothing of trainprof."""

    def test_a_loader_without_workers_fails_at_its_line(self):
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "instrumented_trainer")
        source = os.path.join(os.path.normpath(source), "training.cpp")
        with open(source, encoding="utf-8") as file:
            lines = [number for number, line in enumerate(file, 1) if 'Range range("data_wait")' in line]
        self.assertEqual(len(lines), 1)
        # A small model, and large images: the loader is most of a step, however busy the machine.
        result = self.trainprof("run", "-o", "rec", "--check", "--", os.environ["TRAINPROF_TEST_TRAINER"],
                                "--workers", "0", "--steps", "20", "--width", "8", "--batch", "8", "--samples", "32",
                                "--data", self.path("data"))
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(b"TP101", result.stderr)
        report = self.trainprof("report", "rec", "--format", "github").stdout.decode()
        self.assertIn("file=%s,line=%d,title=TP101" % (source, lines[0]), report)


if __name__ == "__main__":
    harness.main()
