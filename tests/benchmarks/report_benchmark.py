#!/usr/bin/env python3
"""What `trainprof report` of a large Kineto trace takes: time and memory, what a second core gives, a folder of 64
ranks, and, where they are given, HolisticTraceAnalysis' load and its four reports of the same file, what Tracy and
Perfetto take to load it, and another build of trainprof.

  python3 tests/benchmarks/report_benchmark.py build/release/bin/trainprof
  python3 tests/benchmarks/report_benchmark.py build/release/bin/trainprof --rounds 9 --hta .venv-hta/bin/python
  python3 tests/benchmarks/report_benchmark.py build/release/bin/trainprof --tracy tracy-import-chrome \\
      --perfetto trace_processor_shell --before ../before/build/release/bin/trainprof

The trace is one of the corpus (TRAINPROF_CORPUS, or --corpus), its events repeated with later times and other ids until
the file is as large as asked; --keep FOLDER keeps what was made. All that is compared runs in turn, --rounds times;
figures are medians of wall time and peak memory of the whole process. Of the JSON and its gzip a turn is the fastest of
three runs: what a virtual machine's neighbours do costs two cores at work up to half as much again for a second or
two, and one hardly anything. For the same reason two reports of the JSON run at once, a core each, in turn with the
others: they share nothing but the machine, and what they get out of its second core is all that there is. Where that
is less than a core, the gates of a second core are as much lower. Exit status: 0 all gates hold, 1 one does not,
2 usage, 77 no corpus.
"""
import argparse
import gzip
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import machine_unit

SOURCE = "hta/ddp_item_a100.json.gz"
IDS = ("correlation", "External id")
IDS_APART = 10_000_000
MEGABYTE = 1e6
RANKS = 64

# Gates: what has to be so many times as fast, and the memory. Those of a second core are of two whole ones.
SECOND_CORE_JSON = 1.55
SECOND_CORE_GZ = 1.5
SECOND_CORE_FOLDER = 1.7
AGAINST_HTA = 80
MOST_BYTES_AN_EVENT = 60
MOST_SECONDS_OF_RANKS = 2.9  # of 47 MB each, on two cores
RANK_MEGABYTES = 47
RUNS_OF_SHORT = 3

HTA = """
import logging, sys, time, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
begin = time.monotonic()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="", include_last_profiler_step=True)
analysis.get_temporal_breakdown(visualize=False)
analysis.get_idle_time_breakdown(ranks=[0], visualize=False)
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_queue_length_summary(ranks=[0])
print(time.monotonic() - begin)
"""


def repeated(event, times_later, span):
    """The event, so many repetitions later."""
    if times_later == 0:
        return event
    event = dict(event)
    if "ts" in event:
        event["ts"] += times_later * span
    if isinstance(event.get("id"), int):
        event["id"] += times_later * IDS_APART
    args = event.get("args")
    if args and any(isinstance(args.get(key), int) for key in IDS):
        event["args"] = {key: value + times_later * IDS_APART if key in IDS and isinstance(value, int) else value
                         for key, value in args.items()}
    return event


def make(document, path, megabytes):
    """Writes the trace as often as that size takes, of the last time the first part alone; how many events it has."""
    events = document["traceEvents"]
    times = sorted(event["ts"] for event in events if "ts" in event)
    span = times[-1] - times[0] + 1e6
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    size = megabytes * MEGABYTE
    count = 0
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps(head)[:-1] + ', "traceEvents": [\n')
        times_later = 0
        until = times[-1]
        while file.tell() < size:
            before = file.tell()
            for event in events:
                if times_later > 0 and event.get("ph") == "M":
                    continue
                if event.get("ts", until) > until:
                    continue
                file.write((",\n" if count else "") + json.dumps(repeated(event, times_later, span), separators=(",", ":")))
                count += 1
            if until < times[-1]:
                break
            times_later += 1
            left = (size - file.tell()) / (file.tell() - before)
            if left < 1:
                until = times[max(0, int(left * len(times)))]
        file.write("\n]}\n")
    return count


def compress(path):
    target = path.with_name(path.name + ".gz")
    with open(path, "rb") as plain, gzip.open(target, "wb", compresslevel=6) as file:
        shutil.copyfileobj(plain, file, 1 << 20)
    return target


def ranks_of(path, folder):
    """64 files of a job: the same trace, and which rank each is."""
    folder.mkdir(exist_ok=True)
    text = path.read_text(encoding="utf-8")
    for rank in range(RANKS):
        target = folder / f"rank{rank}.json"
        if not target.exists():
            target.write_text(f'{{"distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {RANKS}}},' +
                              text.replace('"distributedInfo"', '"of one rank"', 1)[1:], encoding="utf-8")
    return folder


def for_tracy(path):
    """A copy without the few events whose process or thread has a name instead of a number: Tracy's importer refuses them."""
    target = path.with_name("tracy.json")
    if not target.exists():
        with open(path, encoding="utf-8") as source, open(target, "w", encoding="utf-8") as file:
            file.write(next(source))
            separator = ""
            for line in source:
                is_event = line.startswith("{")
                if is_event and ('"pid":"' in line or '"tid":"' in line):
                    continue
                file.write((separator if is_event else "\n") + line.rstrip(",\n"))
                separator = ",\n"
            file.write("\n")
    return target


def start(command, cores):
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            preexec_fn=lambda: os.sched_setaffinity(0, cores))


def peak_of(process, command):
    """Bytes of the whole process, once it has ended."""
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"report_benchmark: {' '.join(map(str, command))} ended with {process.returncode}: {error.decode()}")
    return usage.ru_maxrss * 1024


def once(command, cores):
    """Seconds and peak bytes of the whole process."""
    begin = time.monotonic()
    peak = peak_of(start(command, cores), command)
    return time.monotonic() - begin, peak


def on_each(command, cores):
    """The same of one process on each core, at once, until the last has ended; the largest peak."""
    begin = time.monotonic()
    peak = max(peak_of(process, command) for process in [start(command, {core}) for core in cores])
    return time.monotonic() - begin, peak


class Gates:
    """Prints figures beside their gates, and remembers whether all hold."""

    def __init__(self):
        self.hold = True

    def at_least(self, what, ratio, gate):
        self.say(f"{what}: {ratio:.2f}x", f"{gate}x", ratio >= gate)

    def say(self, figure, gate, holds):
        print(f"  {figure}; gate {gate}: {'holds' if holds else 'FAILS'}", flush=True)
        self.hold = self.hold and holds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainprof", type=pathlib.Path)
    parser.add_argument("--corpus", type=pathlib.Path, default=os.environ.get("TRAINPROF_CORPUS"))
    parser.add_argument("--megabytes", type=float, default=474, help="of JSON")
    parser.add_argument("--rank-megabytes", type=float, default=RANK_MEGABYTES)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="keep the traces there, or take them from there")
    parser.add_argument("--hta", metavar="PYTHON", help="an interpreter that has HolisticTraceAnalysis")
    parser.add_argument("--tracy", metavar="PROGRAM", help="Tracy's tracy-import-chrome")
    parser.add_argument("--perfetto", metavar="PROGRAM", help="Perfetto's trace_processor_shell")
    parser.add_argument("--before", metavar="PROGRAM", help="an earlier build of trainprof")
    options = parser.parse_args()
    if options.corpus is None or not (pathlib.Path(options.corpus) / SOURCE).exists():
        print("report_benchmark: no corpus: set TRAINPROF_CORPUS", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory(prefix="trainprof-report-") as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        return compare(options, folder)


def made(options, folder):
    """The paths of the JSON, its gzip and the folder of ranks, and the number of events of the first."""
    large, rank, count = folder / "large.json", folder / "rank.json", folder / "events"
    if not count.exists():
        print(f"making {options.megabytes:.0f} MB of JSON, and {RANKS} ranks of {options.rank_megabytes:.0f} MB", flush=True)
        with gzip.open(pathlib.Path(options.corpus) / SOURCE) as file:
            document = json.load(file)
        events = make(document, large, options.megabytes)
        make(document, rank, options.rank_megabytes)
        compress(large)
        ranks_of(rank, folder / "ranks")
        count.write_text(str(events))
    return large, folder / "large.json.gz", folder / "ranks", int(count.read_text())


def compare(options, folder):
    large, packed, ranks, events = made(options, folder)
    cores = sorted(os.sched_getaffinity(0))
    report = [str(options.trainprof), "report"]
    contenders = {}
    for name, path in (("JSON", large), ("gz", packed), ("ranks", ranks)):
        contenders[name, 1] = (once, [*report, str(path)], set(cores[:1]))
        contenders[name, 2] = (once, [*report, str(path)], set(cores[:2]))
        if options.before:
            contenders[f"{name} before", 2] = (once, [options.before, "report", str(path)], set(cores[:2]))
    contenders["JSON, two", 2] = (on_each, [*report, str(large)], set(cores[:2]))
    if options.tracy:
        contenders["Tracy", 2] = (once, [options.tracy, str(for_tracy(large)), str(folder / "large.tracy")], set(cores[:2]))
    if options.perfetto:
        query = "select count(*) from slice"
        contenders["Perfetto", 2] = (once, [options.perfetto, "-Q", query, str(large)], set(cores[:2]))
    load = os.getloadavg()[0]
    runs = {key: [] for key in contenders}
    short = [key for key in contenders if key[0].startswith(("JSON", "gz"))]
    for group in (short, [key for key in contenders if key not in short]):
        for of_round in range(options.rounds + 1):
            for key in group:
                measure, command, on = contenders[key]
                run = min(measure(command, on) for _ in range(RUNS_OF_SHORT if group is short else 1))
                if of_round > 0:
                    runs[key].append(run)
    seconds = {key: statistics.median(run[0] for run in runs[key]) for key in runs}
    peak = {key: statistics.median(run[1] for run in runs[key]) for key in runs}
    print(f"{large.stat().st_size / MEGABYTE:.0f} MB JSON, {packed.stat().st_size / MEGABYTE:.0f} MB gz, {events} events, "
          f"{len(cores)} cores, load before {load:.2f}; medians of {options.rounds}")
    for (name, count), value in seconds.items():
        print(f"  {name:<12} {count} core{'s' if count > 1 else ' '}  {value:7.3f} s  peak {peak[name, count] / MEGABYTE:7.1f} MB")
    gates = Gates()
    if len(cores) > 1:
        worth = min(2.0, 2 * seconds["JSON", 1] / seconds["JSON, two", 2])
        print(f"  two reports at once, a core each, get {worth:.2f} cores out of the machine")
        for name, what, gate in (("JSON", "JSON", SECOND_CORE_JSON), ("gz", "gz", SECOND_CORE_GZ),
                                 ("ranks", f"{RANKS} ranks", SECOND_CORE_FOLDER)):
            gates.at_least(f"second core, {what}", seconds[name, 1] / seconds[name, 2], round(gate * worth / 2, 2))
    if len(cores) > 1 and options.rank_megabytes == RANK_MEGABYTES:
        most = MOST_SECONDS_OF_RANKS * machine_unit.slowness()
        gates.say(f"{RANKS} ranks: {seconds['ranks', 2]:.2f} s", f"{most:.2f} s", seconds["ranks", 2] <= most)
    for name in ("JSON", "gz"):
        an_event = peak[name, 2] / events
        gates.say(f"peak of report, {name}: {an_event:.1f} B/event", f"{MOST_BYTES_AN_EVENT} B", an_event <= MOST_BYTES_AN_EVENT)
    for name in ("JSON", "gz", "ranks"):
        if options.before:
            print(f"  {name} against the earlier build: {seconds[f'{name} before', 2] / seconds[name, 2]:.2f}x")
    for name in ("Tracy", "Perfetto"):
        if (name, 2) in seconds:
            print(f"  our whole report against {name}'s load, JSON: {seconds[name, 2] / seconds['JSON', 2]:.1f}x in time, "
                  f"{peak[name, 2] / peak['JSON', 2]:.1f}x in memory")
    if options.hta:
        done = subprocess.run([options.hta, "-c", HTA, str(packed)], capture_output=True, text=True, check=True)
        hta = float(done.stdout.split()[-1])
        gates.at_least(f"against HTA's load and four reports ({hta:.1f} s), gz", hta / seconds["gz", 2], AGAINST_HTA)
    else:
        print("  without HTA: --hta names an interpreter that has it (scripts/install_hta.sh makes one)")
    return 0 if gates.hold else 1


if __name__ == "__main__":
    sys.exit(main())
