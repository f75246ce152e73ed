"""Python that trains without trainprof's hooks: whatever keeps them out is said, and what samples of the stacks tell of
the loop is shown.

Environment, beside the harness's: TRAINPROF_TEST_TORCH, a Python that has PyTorch.
"""
import json
import os
import shutil
import subprocess

import harness
from python_test import TORCH_PYTHON, Torch, line_of


def ask(code):
    return subprocess.run([TORCH_PYTHON, "-c", code], capture_output=True, check=True).stdout.decode().strip()


class Hookless(Torch):
    def folder_of_torch(self):
        return ask("import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))")

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
        card, report, rank = self.record_hookless(TORCH_PYTHON, "-S", "hookless.py", self.folder_of_torch())
        self.assert_said(card, report, "Python's -S keeps them out: start it without")
        self.assertEqual(card.count("Python's -S"), 1)
        self.assert_phases_are_sampled(rank)
        self.assertIn("by samples of stacks alone", card)
        self.assertIn("Training thread, ms, by samples of its stacks", report)

    def test_a_launcher_that_gives_an_environment_of_its_own(self):
        launcher = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], env={}))"
        card, report, rank = self.record_hookless(TORCH_PYTHON, "-c", launcher, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "its environment was emptied")
        self.assert_phases_are_sampled(rank)

    def test_a_launcher_that_replaces_the_path(self):
        launcher = ("import os, subprocess, sys; os.environ['PYTHONPATH'] = '/tmp'; "
                    "sys.exit(subprocess.call(sys.argv[1:]))")
        card, report, _ = self.record_hookless(TORCH_PYTHON, "-c", launcher, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "its PYTHONPATH was replaced. Put the new folders before")

    def test_a_launcher_whose_own_start_up_code_comes_first(self):
        os.mkdir(self.path("start"))
        with open(self.path("start/sitecustomize.py"), "w", encoding="utf-8"):
            pass
        launcher = ("import os, subprocess, sys; os.environ['PYTHONPATH'] = 'start:' + os.environ['PYTHONPATH']; "
                    "sys.exit(subprocess.call(sys.argv[1:]))")
        card, report, _ = self.record_hookless(TORCH_PYTHON, "-c", launcher, TORCH_PYTHON, "hookless.py")
        self.assert_said(card, report, "the sitecustomize.py in start comes before trainprof's")

    def test_an_interpreter_that_is_part_of_another_program(self):
        """As frozen programs are: it has another name and imports no site."""
        base = ask("import os, sys; print(os.path.realpath(sys.executable))")
        shutil.copy(base, self.path("application"))
        home = ask("import sys; print(sys.base_prefix)")
        card, report, _ = self.record_hookless(self.path("application"), "-S", "hookless.py", self.folder_of_torch(),
                                               PYTHONHOME=home)
        self.assert_said(card, report, "the Python in application imports no sitecustomize")

    def test_nothing_is_said_where_hooks_are(self):
        card, report, rank = self.record_hookless(TORCH_PYTHON, "hookless.py")
        self.assertNotIn("without trainprof's hooks", card + report)
        self.assertNotIn("host_account_source", rank)


if __name__ == "__main__":
    harness.main()
