#!/usr/bin/env python3
"""Runs the acceptance checks and writes results.json and results.md; scripts/gpu_acceptance.sh calls it.

usage: main.py --mode gpu|virtual --trainprof PROGRAM --binaries FOLDER --out FOLDER
               [--pairs N] [--steps N] [--only CHECK,...]
Exit status: 0 nothing failed, 1 a check failed, 2 usage.
"""

import argparse
import os
import pathlib
import platform
import subprocess
import sys

import checks
import programs
import runs
from table import FAIL, OPEN, PASS, SKIP, Table

CHECKS = ["facts", "transparent", "complete", "equality", "overhead", "habits", "kill"]
GPU_FACTS = "name,driver_version,memory.total,power.limit,pcie.link.gen.max,pcie.link.width.max"


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["gpu", "virtual"], required=True)
    parser.add_argument("--trainprof", type=pathlib.Path, required=True)
    parser.add_argument("--binaries", type=pathlib.Path, required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--pairs", type=int, default=5, help="interleaved runs of each comparison; 0: none")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--only", default=",".join(CHECKS), help="some of " + ",".join(CHECKS))
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    unknown = set(options.only) - set(CHECKS)
    if unknown:
        parser.error(f"--only: no check named {', '.join(sorted(unknown))}")
    if options.pairs == 1:
        parser.error("--pairs: an interval needs at least 2; 0 compares no times")
    return options


def facts(table, options, runner):
    table.add("host", "", f"{platform.platform()}, {os.cpu_count()} cores")
    if options.mode == "gpu":
        command = ["nvidia-smi", f"--query-gpu={GPU_FACTS}", "--format=csv,noheader"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for line in done.stdout.strip().splitlines() or ["nvidia-smi tells nothing"]:
            table.add("GPU", "", line)
        torch = runs.python_of_torch()
        table.add("torch", "", f"{torch[0]}, CUDA {torch[1]}" if torch else "this Python has none")
    else:
        table.add("GPU", "", "virtual: every figure below is simulated, not measured")
    for line in runner.doctor().output.strip().splitlines():
        table.add("doctor", "", line.strip())


def run_checks(table, options, runner, all_programs, habits):
    def each(name, check, *arguments):
        for program in all_programs:
            checks.guarded(table, name, program, check, runner, *arguments)

    if "transparent" in options.only:
        each("output unchanged", checks.transparent)
    if "complete" in options.only:
        each("device rows", checks.complete)
    if "equality" in options.only:
        for program in all_programs:
            if program.python:
                checks.guarded(table, "kernels by shape", program, checks.equals_torch_profiler, runner)
            else:
                table.skip("kernels by shape", program.name, "torch.profiler runs Python programs only")
    if "overhead" in options.only and options.pairs > 0:
        each("step overhead", checks.overhead, options.pairs)
    if "habits" in options.only:
        for case in habits:
            checks.guarded(table, "gain", case.program, checks.habit, runner, case, options.pairs)
        if not habits:
            table.skip("habits", "instrumented_trainer", "not built: no CUDA LibTorch was found")
    if "kill" in options.only:
        checks.guarded(table, "SIGKILL", all_programs[0].with_flags("--steps", "1000000"), checks.survives, runner)


def main(arguments):
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    runner = runs.Runner(options.trainprof, options.out, dict(os.environ))
    if options.mode == "gpu":
        all_programs, habits = programs.gpu_programs(options.binaries, options.out, options.steps)
    else:
        all_programs, habits = programs.virtual_programs(options.binaries, options.steps)
    table = Table()
    if "facts" in options.only:
        facts(table, options, runner)
    run_checks(table, options, runner, all_programs, habits)
    table.write(options.out)
    print(f"\n{table.count(PASS)} passed, {table.count(FAIL)} failed, {table.count(OPEN)} left open by their "
          f"interval, {table.count(SKIP)} skipped; "
          f"{options.out / 'results.md'}")
    return 1 if table.count(FAIL) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
