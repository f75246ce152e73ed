#!/usr/bin/env python3
"""The proving ground: runs scenarios on the virtual GPU and compares what trainprof says with what is true.

  score.py --build build/dev                                   all scenarios, seed 1, as the machine is
  score.py --build build/dev --quiet --seeds 3                 before all other programs (needs the right: SCHED_FIFO)
  score.py --build build/dev --quiet --disturbed 0.2           the same, but a fifth of each processor is taken in bursts
  score.py --build build/dev --loaded 2                        beside two busy loops
  score.py --build build/dev --beside "ninja -C b -t clean && ninja -C b"        beside a build, over and over
  score.py --build build/dev --keep runs ...                   keeps recordings and measurements,
  score.py --build build/new --again runs more                 which another trainprof then judges without running anything
  score.py ... --least recall=0.95 --least coverage=0.9 --most width=0.3     a gate

What is scored, by the names that --least and --most take: recall (of habits worth over 2 % of the step, those that a rule
of theirs found), first (the first finding that is no symptom is the worst habit's), precision (alarms that a real habit
accounts for), silent (runs in which nothing is lost, without an alarm), coverage (measured gain within [low, high]; coverage_quiet, coverage_beside: of runs before all other programs, and of others;
coverage_with_noise: or within the measurement's two standard errors of it),
width (median of (high - low) / gain), site (the habit's line or range is named), class (the worst idle class),
step_error and step_error_p90 (|reported / true - 1|), expected_error, identity_error (with _p90, _max) where a report
has them. kinds.py says which rules may find what.

Exit status: 0, or 1 where a figure misses its limit or is absent though it has one, 2 usage.
"""
import argparse
import contextlib
import json
import os
import sys
import tempfile

import judge
import runs


def limit(text):
    name, _, value = text.partition("=")
    return name, float(value)


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/dev", help="folder with bin/trainprof and bin/scenarios")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these scenarios")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--plain", type=int, default=2, help="runs for the truth, each state")
    parser.add_argument("--steps", type=int, default=0, metavar="N", help="of each run (default: the scenarios' own, 60 as a rule)")
    parser.add_argument("--quiet", action="store_true", help="with priority over all other programs, processors kept awake")
    parser.add_argument("--loaded", type=int, default=0, metavar="N", help="beside N busy loops, and, where allowed, little else")
    parser.add_argument("--beside", default="", metavar="COMMAND", help="the same, beside a shell command that runs over and over")
    parser.add_argument("--disturbed", type=float, default=0, metavar="SHARE",
                        help="take that share of each processor in bursts (SCHED_FIFO)")
    parser.add_argument("--record", action="append", default=[], metavar="OPTION", help="of trainprof run, as --full")
    parser.add_argument("--keep", metavar="FOLDER", help="keep recordings and what was measured")
    parser.add_argument("--again", nargs="+", default=[], metavar="FOLDER",
                        help="judge what --keep kept, together, with this build's trainprof")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    parser.add_argument("--least", action="append", type=limit, default=[], metavar="FIGURE=VALUE")
    parser.add_argument("--most", action="append", type=limit, default=[], metavar="FIGURE=VALUE")
    parser.add_argument("--verbose", action="store_true", help="a line for each recorded run")
    return parser.parse_args(arguments)


def kept_in(folder, only):
    """The runs that --keep kept there; of what was run twice the later recording is there."""
    with open(os.path.join(folder, "runs.jsonl"), encoding="utf-8") as kept:
        latest = {(one["scenario"], one["seed"]): one for one in map(json.loads, kept)}
    for one in latest.values():
        if only and one["scenario"] not in only:
            continue
        for watched in one["watched"].values():
            watched["recording"] = os.path.join(os.path.abspath(folder), os.path.basename(watched["recording"]))
        yield one


def measured(options, machine):
    """Runs all that is asked for, or reads what was kept; yields the runs of one scenario and seed."""
    if options.again:
        for folder in options.again:
            yield from kept_in(folder, options.only)
        return
    names = machine.scenarios()
    unknown = set(options.only) - set(names)
    if unknown:
        sys.exit(f"score.py: no such scenario: {', '.join(sorted(unknown))}")
    log = os.path.join(options.keep, "runs.jsonl") if options.keep else os.devnull
    with open(log, "a", encoding="utf-8") as kept, runs.busy_loops(options.loaded), \
            runs.beside(options.beside), runs.disturbed(options.disturbed):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            for name in options.only or names:
                one = runs.measure(machine, name, seed, options.plain, progress)
                kept.write(json.dumps(one) + "\n")
                kept.flush()
                yield one


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr)


def percent(value):
    return "-" if value is None else f"{100 * value:.1f} %"


def number(value):
    return "-" if value is None else f"{value:.2f}"


def counted(values):
    values = [v for v in values if v is not None]
    return f"{sum(values)}/{len(values)}" if values else "-"


def lines_of(judged):
    """The table: one line a scenario and habit, over all seeds."""
    head = ("scenario", "habit", "step", "loss", "found", "first", "inside", "gain", "said", "step error", "also said")
    yield head
    for name in sorted({run["scenario"] for run in judged}):
        of_name = [run for run in judged if run["scenario"] == name]
        on = [run for run in of_name if run["state"] == "on"]
        off = [run for run in of_name if run["state"] == "off"]
        for h in on[0]["habits"] if on else []:
            same = [x for run in on for x in run["habits"] if x["name"] == h["name"]]
            said = next((x["interval"] for x in same if x["interval"]), None)
            yield (name, h["name"], number(on[0]["step_ms"]), percent(sum(x["loss"] for x in same) / len(same)),
                   counted([x["found"] if x["loss"] > judge.REAL else None for x in same]),
                   counted([run["first_right"] for run in on]), counted([x["covered"] for x in same]),
                   number(h["gain_ms"]), f"{said[0]:.2f}..{said[1]:.2f}" if said else "-",
                   percent(judge.quantile([abs(run["step_error"]) for run in on if run["step_error"] is not None], 1)),
                   " ".join(sorted({rule for run in on for rule in run["false"]})))
        yield (name, "(fixed)", number(off[0]["step_ms"]), "", "", "", "", "", "",
               percent(judge.quantile([abs(run["step_error"]) for run in off if run["step_error"] is not None], 1)),
               " ".join(sorted({rule for run in off for rule in run["false"]})))


def print_table(rows):
    rows = list(rows)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def missed(summary, options):
    for kind, limits in (("least", options.least), ("most", options.most)):
        for name, value in limits:
            if name not in summary:
                sys.exit(f"score.py: no figure \"{name}\"; there are {', '.join(summary)}")
            is_met = summary[name] is not None and (summary[name] >= value if kind == "least" else summary[name] <= value)
            if not is_met:
                yield f"{name} is {number(summary[name])}, at {kind} {value:g}"


def main(arguments):
    options = parse(arguments)
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="scenarios-"))
        machine = runs.Machine(options.build, folder, options.quiet, options.record, options.steps, apart=options.loaded > 0 or bool(options.beside))
        judged = []
        for one in measured(options, machine):
            for state, watched in one["watched"].items():
                judged.append(judge.judge_run(one, state, machine.report(watched["recording"])))
                if options.verbose:
                    print(json.dumps(judged[-1]))
        progress("")
    if not judged:
        sys.exit("score.py: nothing was run")
    summary = judge.summarise(judged)
    print_table(lines_of(judged))
    print()
    for name, value in summary.items():
        print(f"{name:20} {f'{value:.4f}' if isinstance(value, float) else value}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"summary": summary, "runs": judged}, file, indent=1)
    misses = list(missed(summary, options))
    for miss in misses:
        print(f"score.py: {miss}", file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RuntimeError as error:
        sys.exit(f"score.py: {error}")
