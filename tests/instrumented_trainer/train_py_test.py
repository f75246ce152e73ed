#!/usr/bin/env python3
"""Drives the trainer's Python twin as a user does: command line in, exit code and output out.

usage: train_py_test.py [unittest arguments], with TRAINER_PYTHON (a Python that has PyTorch) and
TRAINER_BINARY (instrumented_trainer, whose flags the twin shares) in the environment.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "instrumented_trainer" / "train.py"
PYTHON = os.environ.get("TRAINER_PYTHON", sys.executable)
SMALL = ["--batch", "8", "--samples", "16", "--stored-size", "48", "--image-size", "32", "--width", "8"]
# What only one of the two has, and why.
ONLY_PYTHON = {"--cuda-graph", "--empty-cache-every", "--data-parallel"}  # habits of Python users


def run(*arguments):
    return subprocess.run(
        [PYTHON, SCRIPT, *arguments], capture_output=True, text=True, timeout=120, check=False
    )


# Runs the script with each of the lists of arguments in a process that starts torch once, and prints their exit codes and
# what they wrote.
SEVERAL = """
import contextlib, io, json, runpy, sys
script, lists = sys.argv[1:]
ended = []
for arguments in json.loads(lists):
    sys.argv = [script, *arguments]
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            runpy.run_path(script, run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code
    ended.append([code, output.getvalue(), errors.getvalue()])
print(json.dumps(ended))
"""


def run_several(*lists):
    result = subprocess.run([PYTHON, "-c", SEVERAL, str(SCRIPT), json.dumps(lists)], capture_output=True, text=True,
                            timeout=120, check=True)
    return json.loads(result.stdout)


def flags(text):
    return set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", text))


def losses(output):
    return [float(loss) for loss in re.findall(r"^step \d+ loss ([\d.]+) ", output, re.MULTILINE)]


class Twin(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        found = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"
        if subprocess.run([PYTHON, "-c", found], check=False).returncode != 0:
            print(f"Skipped: {PYTHON} has no PyTorch")
            sys.exit(77)
        cls.folder = tempfile.TemporaryDirectory()
        cls.small = SMALL + ["--data", cls.folder.name]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_has_the_flags_of_the_cpp_trainer(self):
        binary = os.environ["TRAINER_BINARY"]
        cpp = subprocess.run([binary, "--help"], capture_output=True, text=True, check=True).stdout
        explained = re.findall(r"^ +(?:-\w,)?(--[a-z-]+)", cpp, re.MULTILINE)
        [[_, help_text, _]] = run_several(["--help"])
        self.assertEqual(flags(help_text) - ONLY_PYTHON, set(explained))

    def test_learns(self):
        result = run(*self.small, "--steps", "40", "--log-every", "10", "--lr", "0.003")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(losses(result.stdout)[-1], losses(result.stdout)[0])

    def test_same_seed_same_losses(self):
        first, second = (run(*self.small, "--steps", "5", "--log-every", "1") for _ in range(2))
        self.assertEqual(len(losses(first.stdout)), 5)
        self.assertEqual(losses(first.stdout), losses(second.stdout))

    def test_every_habit_runs(self):
        habits = ["--workers", "0", "--item-every", "1", "--cpu-tensors", "--retain-graph", "--keep-graph"]
        for model in ("resnet", "transformer"):
            result = run(*self.small, *habits, "--steps", "3", "--model", model, "--amp", "bf16")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertRegex(result.stdout, r"mean of 1 steps after warm-up: [\d.]+ ms/step, of it ")

    def test_says_what_is_wrong(self):
        cases = {
            ("--batch", "17", "--samples", "16"): "--batch must not exceed --samples",
            ("--cuda-graph",): "--cuda-graph needs --device cuda",
            ("--model", "transformer", "--image-size", "30"): "--image-size a multiple of 8",
        }
        for message, (code, _, errors) in zip(cases.values(), run_several(*cases), strict=True):
            self.assertEqual(code, 2)
            self.assertIn(message, errors)

    def test_needs_a_gpu_for_cuda(self):
        probe = "import sys, torch; sys.exit(torch.cuda.is_available())"
        if subprocess.run([PYTHON, "-c", probe], check=False).returncode:
            self.skipTest("this machine has a CUDA device")
        result = run("--device", "cuda")
        self.assertEqual(result.returncode, 2)
        self.assertIn("finds no CUDA device", result.stderr)


if __name__ == "__main__":
    unittest.main()
