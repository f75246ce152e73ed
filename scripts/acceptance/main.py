#!/usr/bin/env python3
"""Runs the acceptance checks and writes results.json and results.md; scripts/gpu_acceptance.sh calls it.

usage: main.py --mode gpu|virtual --trainprof PROGRAM --binaries FOLDER --out FOLDER
               [--pairs N] [--steps N] [--only CHECK,...] [--programs NAME,...] [--cupti LIBRARY,...]
               [--side-by-side]
Exit status: 0 nothing failed, 1 a check failed, 2 usage.
"""

import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys

import checks
import first
import others
import programs
import runs
from table import FAIL, OPEN, PASS, SKIP, Table

# In the order in which they are run: what decides whether the rest means anything comes first.
CHECKS = ["facts", "start", "slots", "longest", "inside", "lines", "memory", "pause", "versions", "transparent",
          "complete", "others", "equality", "costs", "overhead", "habits", "kill"]
# Of these, those in which nothing is timed: several may run beside each other.
UNTIMED = ["slots", "longest", "inside", "lines", "versions", "transparent", "complete", "others", "kill"]
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
    parser.add_argument("--programs", default="", help="of checks that run each program: only programs with such a name")
    parser.add_argument("--cupti", default="", help="files of libcupti that are to be tried as well")
    parser.add_argument("--pause-steps", type=int, default=5000, help="of each run in which pauses are timed")
    parser.add_argument("--side-by-side", action="store_true", help="what is not timed, all at once: takes many cores")
    parser.add_argument("--repeat", type=int, default=20, help="runs in which the longest kernel is looked for")
    options = parser.parse_args(arguments)
    options.cupti = [path for path in options.cupti.split(",") if path]
    options.only = options.only.split(",")
    options.programs = [name for name in options.programs.split(",") if name]
    unknown = set(options.only) - set(CHECKS)
    if unknown:
        parser.error(f"--only: no check named {', '.join(sorted(unknown))}")
    if options.pairs == 1:
        parser.error("--pairs: an interval needs at least 2; 0 compares no times")
    return options


def run_side_by_side(table, options, arguments):
    """Each check that is not timed in a process and a folder of its own."""
    chosen = [name for name in options.only if name in UNTIMED]
    options.only = [name for name in options.only if name not in UNTIMED]
    running = []
    for name in chosen:
        out = options.out / name
        out.mkdir()
        (options.out / "data").mkdir(exist_ok=True)
        (out / "data").symlink_to(options.out / "data")
        own = [sys.executable, "-B", __file__, *without_flag(arguments), "--only", name, "--out", str(out)]
        with open(options.out / f"{name}.txt", "w", encoding="utf-8") as log:
            running.append((name, out, subprocess.Popen(own, stdout=log, stderr=log)))
    for name, out, process in running:
        process.wait()
        for row in json.loads((out / "results.json").read_text()) if (out / "results.json").exists() else []:
            table.add(row["check"], row["program"], row["figure"], row["bound"], row["verdict"])
        if process.returncode not in (0, 1):
            table.judge(name, "", f"broke: {options.out / name}.txt", "", False)


def without_flag(arguments):
    return [argument for argument in arguments if argument != "--side-by-side"]


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


def run_first(table, options, runner, all_programs, habits):
    def check(name, program, function, *arguments):
        if name in options.only:
            checks.guarded(table, name, program, lambda t, p, r: function(t, p, r, *arguments), runner)

    virtual = options.mode == "virtual"
    counted = programs.counted(options.binaries, "50")
    loop = next((program for program in all_programs if program.python), all_programs[0])
    # Where the host is the slower side, all that recording costs it shows.
    host_bound = next(program for program in all_programs if "launch-bound" in program.name)
    long_loop = loop.with_flags("--steps", "400", "--log-every", "400")
    graph = all_programs[-1].with_flags("--steps", "400", "--log-every", "400")
    check("start", counted, first.start, virtual)
    check("slots", programs.counted(options.binaries, "100", str(first.SPIN_S)), first.killed_slots)
    check("slots", all_programs[0].with_flags("--steps", "1000000", "--log-every", "50"), first.killed_slots, "loss", 3.0)
    check("longest", long_loop, first.longest, options.repeat)
    check("longest", long_loop, first.longest, 1, first.SHORT_PAUSE_MS if not virtual else 100)
    check("longest", graph, first.longest, 1, first.SHORT_PAUSE_MS if not virtual else 100)
    if "inside" in options.only:
        if virtual:
            table.skip("torch.profiler inside", "", "torch does not know the virtual GPU")
        else:
            inside = runs.Command("torch.profiler inside", ())
            checks.guarded(table, "torch.profiler inside", inside, lambda t, _: first.profiler_inside(t, runner))
    if "lines" in options.only:
        first.unwind_tables(table)
        for program, source, text in programs.item_lines(options.mode, all_programs, habits):
            checks.guarded(table, "line of .item()", program, first.source_line, runner, source, text)
    check("memory", loop, first.device_memory)
    if options.pairs > 0:
        check("pause", host_bound, first.pause, options.pairs, options.pause_steps, checks.MAX_OVERHEAD_PERCENT)
    check("versions", counted, first.versions, options.cupti)


def run_checks(table, options, runner, all_programs, habits):
    def wanted(program):
        return not options.programs or any(name in program.name for name in options.programs)

    def each(name, check, *arguments):
        for program in filter(wanted, all_programs):
            checks.guarded(table, name, program, check, runner, *arguments)

    counted = programs.counted(options.binaries, "1000")
    if "transparent" in options.only:
        each("output unchanged", checks.transparent)
    if "complete" in options.only:
        each("device rows", checks.complete)
        checks.guarded(table, "device rows", counted, checks.complete, runner)
    if "others" in options.only:
        if options.mode == "virtual":
            table.skip("programs of others", "", "torch and JAX do not know the virtual GPU")
        else:
            others.check(table, runner)
    if "equality" in options.only:
        for program in filter(wanted, all_programs):
            if program.python:
                checks.guarded(table, "kernels by shape", program, checks.equals_torch_profiler, runner)
            else:
                table.skip("kernels by shape", program.name, "torch.profiler runs Python programs only")
    if "costs" in options.only:
        checks.cupti_costs(table, options.mode, options.cupti)
    if "overhead" in options.only and options.pairs > 0:
        each("step overhead", checks.overhead, options.pairs)
    if "habits" in options.only:
        for case in (case for case in habits if wanted(case.program)):
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
    table = Table(options.out)
    if "facts" in options.only:
        facts(table, options, runner)
    if options.side_by_side:
        run_side_by_side(table, options, arguments)
    run_first(table, options, runner, all_programs, habits)
    run_checks(table, options, runner, all_programs, habits)
    print(f"\n{table.count(PASS)} passed, {table.count(FAIL)} failed, {table.count(OPEN)} left open by their "
          f"interval, {table.count(SKIP)} skipped; "
          f"{options.out / 'results.md'}")
    return 1 if table.count(FAIL) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
