"""`trainprof.assert_budget`: the gate as a test, of runs that hold their budgets and of those that do not."""
import os
import re
import sys

import harness
from harness import TrainprofTest

PACKAGE = os.path.join(os.environ["TRAINPROF_TEST_LIB"], "trainprof-python")
DOCS = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "ci")
# Steps of 6 ms, of which the wait for input is four; no torch.
PROGRAM = """
import sys, time, trainprof
for i in range(24):
    with trainprof.range("step"):
        with trainprof.range("data_wait"):
            time.sleep(0.004)
        time.sleep(0.002)
print("the program's own line")
raise SystemExit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""
ASSERT = "import json, sys, trainprof\nprint(trainprof.assert_budget(%s)['schema_version'])\n"


class Budgets(TrainprofTest):
    def setUp(self):
        super().setUp()
        self.put("train.py", PROGRAM)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def python(self, *arguments):
        return self.run_plain([sys.executable, "-B", *arguments], env=self.environment(PYTHONPATH=PACKAGE))

    def ask(self, arguments):
        """What `assert_budget(...)` ends with: "" where it returns, else its exception."""
        result = self.python("-c", ASSERT % arguments)
        said = result.stderr.decode()
        if result.returncode == 0:
            self.assertRegex(result.stdout.decode(), r"^1\.\d+\n$")
            return ""
        return re.search(r"^(Assertion|Value|Runtime|Type)Error.*", said, re.MULTILINE | re.DOTALL).group()

    def record(self):
        result = self.trainprof("run", "-o", "rec", "--", sys.executable, "-B", "train.py")
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_budget_that_holds_and_one_that_does_not(self):
        self.record()
        self.assertEqual(self.ask("'rec', step_time_ms=1e6"), "")
        self.assertEqual(self.ask("'rec', step_time_ms={'stat': 'p95', 'max': 1e6}, input_wait='99%'"), "")
        broken = self.ask("'rec', step_time_ms=0.1, input_wait='1%'")
        self.assertIn("AssertionError", broken)
        for said in ("step time p50", "at most 0.1 ms", "at most 1 % of a step", "TP101", "FAIL: 2 broken budgets"):
            self.assertIn(said, broken)

    def test_findings_fail_where_it_is_asked_for(self):
        self.record()
        self.assertEqual(self.ask("'rec', step_time_ms=1e6"), "")
        self.assertIn("FAIL: 1 finding", self.ask("'rec', step_time_ms=1e6, fail_on='error'"))
        # Without budgets the policy decides alone: that of no file fails on errors.
        self.assertIn("FAIL: 1 finding", self.ask("'rec'"))
        self.put(".trainprof.toml", "[check]\nfail-on = 'never'\n[budgets.step_time_ms]\nmax = 0.1\n")
        self.assertIn("FAIL: 1 broken budget", self.ask("'rec'"))
        self.assertEqual(self.ask("'rec', step_time_ms=1e6"), "")  # instead of the policy's
        self.assertIn("FAIL: 1 broken budget", self.ask("'rec', input_wait='99%'"))  # beside the policy's
        self.put("other.toml", "[check]\nfail-on = 'never'\n")
        self.assertEqual(self.ask("'rec', config='other.toml'"), "")

    def test_a_command_is_recorded_and_nothing_stays(self):
        command = "[sys.executable, '-B', 'train.py'%s]"
        before = sorted(os.listdir(self.cwd))
        self.assertEqual(self.ask(command % "" + ", step_time_ms=1e6"), "")
        self.assertIn("FAIL: 1 broken budget", self.ask(command % "" + ", step_time_ms=0.1"))
        self.assertEqual(sorted(os.listdir(self.cwd)), before)
        failed = self.ask(command % ", '7'" + ", step_time_ms=1e6")
        self.assertIn("RuntimeError", failed)
        self.assertIn("exit code 7", failed)
        self.assertIn("the program's own line", self.python("-c", ASSERT % (command % ", '7'" + ", idle=1")).stderr.decode())

    def test_what_was_not_measured_fails(self):
        self.record()
        unknown = self.ask("'rec', peak_gpu_memory='10 GiB'")
        self.assertIn("AssertionError", unknown)
        self.assertIn("trainprof run --memory", unknown)
        self.assertIn("INCONCLUSIVE", unknown)
        self.assertEqual(self.ask("'rec', peak_gpu_memory='10 GiB', allow_inconclusive=True"), "")

    def test_a_baseline_is_compared_with(self):
        self.record()
        self.assertEqual(self.trainprof("baseline", "create", "base.json", "rec").returncode, 0)
        self.assertEqual(self.ask("'rec', baseline='base.json', step_time_ms={'max_regression': '5%'}"), "")
        self.assertIn("none.json", self.ask("'rec', baseline='none.json'"))

    def test_mistakes_are_no_failed_assertions(self):
        self.record()
        for arguments, kind, said in (("'rec', step_time=3", "ValueError", "did you mean 'step_time_ms'"),
                                      ("'rec', step_time_ms='fast'", "ValueError", "a number"),
                                      ("'rec', fail_on='eror'", "ValueError", "--fail-on eror"),
                                      ("'none', step_time_ms=3", "RuntimeError", "none"),
                                      ("['/nor/there'], step_time_ms=3", "RuntimeError", "/nor/there")):
            with self.subTest(arguments):
                error = self.ask(arguments)
                self.assertIn(kind, error)
                self.assertIn(said, error)
                self.assertNotIn("AssertionError", error)

    def test_the_example_for_pytest(self):
        """docs/ci/test_speed.py, as pytest runs it; with a limit that no run keeps it fails, at its own line."""
        # The wait for input is next to nothing of a step, however busy the machine: it does not sleep at all.
        self.put("train.py", PROGRAM.replace("time.sleep(0.004)", "pass").replace("0.002", "0.04"))
        python = harness.python_with("pytest")

        def pytest():
            return self.run_plain([python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_speed.py"],
                                  env=self.environment(PYTHONPATH=PACKAGE))
        with open(os.path.join(DOCS, "test_speed.py"), encoding="utf-8") as file:
            example = file.read()
        self.put("test_speed.py", example)
        result = pytest()
        self.assertEqual(result.returncode, 0, result.stdout)
        self.put("test_speed.py", example.replace("step_time_ms=400", "step_time_ms=0.4"))
        result = pytest()
        self.assertEqual(result.returncode, 1, result.stdout)
        text = result.stdout.decode()
        self.assertIn("at most 0.4 ms", text)
        self.assertIn("\ntest_speed.py:", text)
        self.assertNotIn("_budget.py", text)  # the caller's line is what is shown


if __name__ == "__main__":
    harness.main()
