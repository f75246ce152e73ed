#!/usr/bin/env python3
"""The reference trainer and its Python twin, really run on the CPU: is what trainprof predicts what a change gives?

  real_runs.py --build build/dev                        all programs, 5 rounds
  real_runs.py --build build/dev --only transformer --rounds 3 --json figures.json

Each round runs a program with its habit, without it, and recorded with it, one after the other, so that all three
meet the same machine. The gain is the mean step with the habit less the mean step without it; it has to lie within
[low, high] of what the middle one of the recordings says (by expected gain). Nothing else should run meanwhile.

Exit status: 0 where all gains lie within, 1 where one does not, 2 usage.
"""
import argparse
import dataclasses
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEAN = re.compile(r"^mean of \d+ steps after warm-up: ([\d.]+) ms/step", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    command: tuple
    habit: tuple
    fixed: tuple
    rule: str


def cases(build, python, folder, steps):
    common = ("--device", "cpu", "--steps", str(steps), "--warmup", "10", "--log-every", str(steps))
    trainer = (str(build / "bin" / "instrumented_trainer"), *common, "--data", str(folder / "data"))
    twin = (python, str(ROOT / "instrumented_trainer" / "train.py"), *common, "--data", str(folder / "twin"))
    loader = (("--workers", "0"), ("--workers", "2"), "input-bound")
    return [
        Case("resnet", trainer, *loader),
        Case("transformer", trainer + ("--model", "transformer"), *loader),
        Case("python twin", twin, *loader),
    ]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = MEAN.search(done.stdout)
    if done.returncode != 0 or found is None:
        sys.exit(f"real_runs: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return float(found.group(1))


@dataclasses.dataclass
class Round:
    habit_ms: float
    fixed_ms: float
    recorded_ms: float
    low: float
    expected: float
    high: float


def finding_of(trainprof, place, rule):
    """The gain that the recording's report promises for that rule; zeros where it has no such finding."""
    done = subprocess.run([trainprof, "report", place, "--format", "json"], capture_output=True, text=True, check=True)
    for finding in json.loads(done.stdout)["findings"]:
        if finding["rule"] == rule:
            return finding["gain_ms_per_step"]
    return {"low": 0.0, "expected": 0.0, "high": 0.0}


def one_round(trainprof, case, folder, number):
    habit = run(case.command + case.habit)
    fixed = run(case.command + case.fixed)
    place = str(folder / f"{case.name.replace(' ', '_')}-{number}")
    recorded = run((trainprof, "run", "--output", place, "--", *case.command, *case.habit))
    gain = finding_of(trainprof, place, case.rule)
    return Round(habit, fixed, recorded, gain["low"], gain["expected"], gain["high"])


def judged(case, rounds):
    """The figures of a case, as a dict."""
    gains = [r.habit_ms - r.fixed_ms for r in rounds]
    gain = statistics.fmean(gains)
    noise = 2 * statistics.stdev(gains) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
    middle = sorted(rounds, key=lambda r: r.expected)[len(rounds) // 2]
    return {
        "name": case.name, "habit": case.habit, "fixed": case.fixed, "rule": case.rule,
        "habit_ms": statistics.fmean(r.habit_ms for r in rounds), "fixed_ms": statistics.fmean(r.fixed_ms for r in rounds),
        "recorded_ms": statistics.fmean(r.recorded_ms for r in rounds),
        "gain_ms": gain, "two_standard_errors_ms": noise,
        "low": middle.low, "expected": middle.expected, "high": middle.high,
        "within": middle.low <= gain <= middle.high,
        "recordings_within": sum(r.low <= gain <= r.high for r in rounds), "rounds": len(rounds),
    }


def show(figures):
    print(f"{figures['name']}: {' '.join(figures['habit'])} {figures['habit_ms']:.1f} ms/step, "
          f"{' '.join(figures['fixed'])} {figures['fixed_ms']:.1f}: measured gain {figures['gain_ms']:.1f} "
          f"+- {figures['two_standard_errors_ms']:.1f}, {figures['rule']} says {figures['low']:.1f} to {figures['high']:.1f} "
          f"(expected {figures['expected']:.1f}): {'within' if figures['within'] else 'NOT within'}; "
          f"of {figures['recordings_within']} of {figures['rounds']} recordings", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev", help="folder with bin/trainprof and the trainer")
    parser.add_argument("--python", default=str(ROOT / ".venv/bin/python"), help="one that has torch")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--json", type=pathlib.Path, help="write all figures")
    options = parser.parse_args()
    trainprof = str(options.build / "bin" / "trainprof")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        all_cases = cases(options.build, options.python, folder, options.steps)
        chosen = [case for case in all_cases if not options.only or case.name in options.only]
        unknown = set(options.only) - {case.name for case in all_cases}
        if unknown or options.rounds < 1:
            parser.error(f"no program {', '.join(sorted(unknown))}" if unknown else "at least one round")
        results = []
        for case in chosen:
            run(case.command + case.fixed)  # draws the data set
            rounds = [one_round(trainprof, case, folder, number) for number in range(options.rounds)]
            results.append(judged(case, rounds))
            show(results[-1])
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0 if all(figures["within"] for figures in results) else 1


if __name__ == "__main__":
    sys.exit(main())
