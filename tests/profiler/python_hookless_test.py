"""Python that is kept from trainprof's hooks. They come all the same where the interpreter is the program itself; else
what keeps them out is said, and what samples of the stacks tell of the loop is shown.

Environment, beside the harness's: TRAINPROF_TEST_TORCH, a Python that has PyTorch.
"""
import json
import os
import shutil
import subprocess

import harness
from python_test import TORCH_PYTHON, Torch, line_of, torchs_python_is_at_least


def ask(code):
    return subprocess.run([TORCH_PYTHON, "-c", code], capture_output=True, check=True).stdout.decode().strip()


LAUNCHER = "import os, subprocess, sys; %s; sys.exit(subprocess.call(sys.argv[1:]))"
REPLACES_PATH = LAUNCHER % "os.environ['PYTHONPATH'] = '/tmp'"
COMES_FIRST = LAUNCHER % "os.environ['PYTHONPATH'] = 'start:' + os.environ['PYTHONPATH']"


class Kept(Torch):
    """The ways in which interpreters are kept from them."""

    def folder_of_torch(self):
        return ask("import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))")

    def with_start_up_code(self):
        os.mkdir(self.path("start"))
        with open(self.path("start/sitecustomize.py"), "w", encoding="utf-8"):
            pass

    def application(self):
        """As frozen programs are: it has another name and imports no site. Needs PYTHONHOME."""
        shutil.copy(ask("import os, sys; print(os.path.realpath(sys.executable))"), self.path("application"))
        return self.path("application")


class Hookless(Kept):
    def record_hookless(self, *command, **changes):
        """The card and the report, on one line each, and the report's only rank."""
        result = self.trainprof("run", "-o", "run", "--stack-hz", "200", "--", *command, env=self.environment(**changes))
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        report = self.trainprof("report", "run").stdout.decode()
        return result.stderr.decode(), " ".join(report.split()), self.rank()

    def assert_said(self, card, report, why):
        self.assertRegex(card, r"note: \w\S* \(process \d+\) uses torch without trainprof's hooks: " + why)
        self.assertRegex(report, r"NOT HOOKED \w\S* \(process \d+\) uses torch without trainprof's hooks: " + why)
        self.assertNotIn("no process used torch", (card + report).lower())
        self.assertNotIn("import trainprof", report)

    def assert_phases_are_sampled(self, rank):
        """Within what some hundred samples can tell."""
        with open(self.path("truth.json"), encoding="utf-8") as file:
            steps = json.load(file)
        self.assertEqual(rank["host_account_source"], "samples")
        seen = {it["class"]: it["ms_per_step"] for it in rank["host_account"]}
        self.assertAlmostEqual(sum(seen.values()), rank["steps"]["window_ms"], delta=0.1)
        phases = ("input_wait", "forward", "backward", "optimizer")
        true = {phase: sum(step.get(phase, 0) for step in steps) for phase in phases}
        for phase in phases:
            self.assertAlmostEqual(seen[phase], true[phase], delta=0.25 * true[phase] + 150,
                                   msg=(phase, seen, true))
        wait = next(it for it in rank["host_lines"] if it["class"] == "input_wait")
        sleep = line_of("truth.py", "time.sleep(self.seconds)")
        self.assertIn(("truth.py", sleep), [(os.path.basename(it["file"] or ""), it["line"]) for it in wait["lines"]])

    def test_site_is_left_out(self):
        card, report, rank = self.record_hookless("sh", "-c", '"$@"; exit $?', "sh", TORCH_PYTHON, "-S",
                                                  "hookless.py", self.folder_of_torch())
        self.assert_said(card, report, "Python's -S keeps them out: start it without")
        self.assertEqual(card.count("Python's -S"), 1)
        self.assert_phases_are_sampled(rank)
        # Where torch takes long to import the wait is too small a share to be the verdict; it is said nevertheless.
        self.assertRegex(card, "(by|from) samples of stacks alone")
        self.assertIn("Training thread, ms, by samples of its stacks", report)

    def test_a_launcher_that_gives_an_environment_of_its_own(self):
        launcher = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], env={}))"
        card, report, rank = self.record_hookless(TORCH_PYTHON, "-c", launcher, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "its environment was emptied")
        self.assert_phases_are_sampled(rank)

    def test_a_launcher_that_replaces_the_path(self):
        card, report, _ = self.record_hookless(TORCH_PYTHON, "-c", REPLACES_PATH, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "its PYTHONPATH was replaced. Put the new folders before")

    def test_a_launcher_whose_own_start_up_code_comes_first(self):
        self.with_start_up_code()
        card, report, _ = self.record_hookless(TORCH_PYTHON, "-c", COMES_FIRST, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "the sitecustomize.py in start comes before trainprof's")

    def test_an_interpreter_that_is_part_of_another_program(self):
        card, report, _ = self.record_hookless(self.application(), "-S", "hookless.py", self.folder_of_torch(),
                                               PYTHONHOME=ask("import sys; print(sys.base_prefix)"))
        self.assert_said(card, report, "the Python in application imports no sitecustomize")

    def test_nothing_is_said_where_hooks_are(self):
        card, report, rank = self.record_hookless(TORCH_PYTHON, "hookless.py")
        self.assertNotIn("without trainprof's hooks", card + report)
        self.assertNotIn("host_account_source", rank)


class Preloaded(Kept):
    """The library lies in the interpreter from its beginning."""

    def record(self, *command, **changes):
        result = self.trainprof("run", "-o", "run", "--force", "--", *command, env=self.environment(**changes))
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        self.assertNotIn(b"without trainprof's hooks", result.stderr)
        return result

    def assert_hooked(self):
        """What only hooks tell. Whether their times are true, python.Phases says."""
        rank = self.rank()
        self.assertEqual(rank["steps"]["source"], "optimizer")
        self.assertNotIn("host_account_source", rank)
        seen = {it["class"]: it["ms_per_step"] for it in rank["host_account"]}
        for phase in ("input_wait", "forward", "backward", "optimizer"):
            self.assertGreater(seen[phase], 0, phase)
        self.assertEqual(self.report["environment"]["loader.workers"], "0")
        self.assertNotIn("python.unwatched", self.report["environment"])

    def test_it_brings_the_hooks(self):
        """python.Start has every option."""
        # -I keeps the script's own folder from it as well.
        with open(self.path("start.py"), "w", encoding="utf-8") as file:
            file.write("import sys; sys.path[:0] = %r; import hookless" % [self.cwd, self.folder_of_torch()])
        self.record(TORCH_PYTHON, "-I", "start.py")
        self.assert_hooked()
        self.assert_first_finding("TP101", "truth.py", line_of("truth.py", "next(iterator)"))

    def test_a_shell_in_between_hands_it_on(self):
        with open(self.path("python3"), "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\nexec %s "$@"\n' % TORCH_PYTHON)
        os.chmod(self.path("python3"), 0o755)
        self.record(self.path("python3"), "-S", "hookless.py", self.folder_of_torch())
        self.assert_hooked()

    def test_the_program_sees_nothing_of_it(self):
        code = ("import os, subprocess, sys, threading; "
                "print(os.environ.get('LD_PRELOAD'), sorted(sys.modules), sys.path, threading.active_count()); "
                "sys.stdout.flush(); subprocess.run(['env'], check=True)")
        for users in ({}, {"LD_PRELOAD": "libutil.so.1"}):
            for option in ("-I", "-S"):
                with self.subTest((users, option)):
                    plain = self.run_plain([TORCH_PYTHON, option, "-c", code], env=self.environment(**users))
                    result = self.record(TORCH_PYTHON, option, "-c", code, **users)
                    self.assertEqual(result.stdout.splitlines()[0], plain.stdout.splitlines()[0])
                    preloads = [it for it in result.stdout.splitlines() if it.startswith(b"LD_PRELOAD")]
                    self.assertEqual(preloads, [b"LD_PRELOAD=" + it.encode() for it in users.values()])

    def test_a_torch_that_fails_says_so_as_ever(self):
        """While it is imported, or before it begins."""
        if not torchs_python_is_at_least(3, 11):
            self.skipTest("Python 3.10 raises on with tracebacks that cannot be changed")
        with open(self.path("torch.py"), "w", encoding="utf-8") as file:
            file.write("import time\n%s\nraise ImportError('not this one', name='mkl')" % ("time.sleep(0.3); " * 2))
        code = ("import sys, traceback; sys.path.insert(0, '')\n"
                "try: import torch\n"
                "except ImportError: traceback.print_exc()\n"
                "print('torch' in sys.modules)\n")
        command = [TORCH_PYTHON, "-I", "-c", code]
        plain = self.run_plain(command)
        self.assertIn(b"not this one", plain.stderr)
        result = self.record(*command)
        self.assertEqual(result.stdout, plain.stdout)
        self.assertTrue(result.stderr.startswith(plain.stderr), result.stderr)


if __name__ == "__main__":
    harness.main()
