"""The checks themselves. Each adds its rows to the table; a check that breaks is a FAIL, not a stop."""

import pathlib
import shutil
import statistics
import subprocess
import sys

import measures
import programs
import runs
import traces

COSTS = pathlib.Path(__file__).resolve().parent / "cupti_costs.py"
MAX_OVERHEAD_PERCENT = 1.0       # of a step; docs/gpu_results.md
MAX_PART_OF_TORCH_PROFILER = 0.5
MEDIAN_PERCENT, MEDIAN_US = 5.0, 1.0  # a kernel's median duration may differ by the larger
CHOSEN_PERCENT = 10.0            # an algorithm may take a kernel more, for splitting and adding up
MAX_RECORDING_BYTES = 2 << 30    # the default bound of `trainprof run`
KILL_AFTER_S = (4.0, 7.0)


def guarded(table, name, program, check, *arguments):
    try:
        check(table, program, *arguments)
    except Exception as error:  # pylint: disable=broad-except
        table.judge(name, program.name, f"broke: {error}", "", False)


def transparent(table, program, runner):
    """The program prints the same losses, recorded or not."""
    program = program.with_flags(*program.repeatable)
    plain, (recorded, _) = runner.plain(program), runner.recorded(program)
    same = plain.losses() == recorded.losses()
    table.judge("output unchanged", program.name, f"{len(plain.losses())} losses", "equal", same)


def overhead(table, program, runner, pairs):
    """Of steps all of which are recorded in full. Interleaved runs, so that drift of clocks and caches meets all alike."""
    plain, recorded, profiled = [], [], []
    for pair in range(pairs):
        plain.append(runner.plain(program).step_ms)
        outcome, place = runner.recorded(program, "--full")
        recorded.append(outcome.step_ms)
        shutil.rmtree(place)
        if program.python:
            trace = runner.folder / f"torch-profiler-{pair}.json"
            profiled.append(runner.under_torch_profiler(program, trace).step_ms)
            trace.unlink()
    ours = measures.relative_percent(recorded, plain)
    table.add("overhead in a window", program.name,
              f"{ours.text('%')}, of {statistics.median(plain):.3f} ms",
              f"{measures.list_of(plain, 'ms')}; recorded {measures.list_of(recorded, 'ms')}")
    if not profiled:
        return
    theirs = measures.relative_percent(profiled, plain)
    table.add("torch.profiler overhead", program.name, theirs.text("%"), "activities CPU and CUDA")
    more = measures.differences(recorded, [MAX_PART_OF_TORCH_PROFILER * (t - p) + p for t, p in zip(profiled, plain)])
    table.judge_at_most("against torch.profiler", program.name, more, 0, "ms",
                        f"at most {MAX_PART_OF_TORCH_PROFILER:.0%} of its overhead")


def cupti_costs(table, mode, libraries):
    """What each of the kinds that CUPTI is asked for takes of a step of torch's on the host."""
    name = "costs of CUPTI"
    if mode == "virtual":
        table.skip(name, "", "torch does not know the virtual GPU")
        return
    library = libraries[0] if libraries else runs.cupti_of_torch()
    if library is None:
        table.skip(name, "", "this Python's torch has no libcupti")
        return
    done = subprocess.run([sys.executable, str(COSTS), library], capture_output=True, text=True, timeout=runs.TIMEOUT_S,
                          check=False)
    for line in done.stdout.splitlines():
        table.add(name, line.split(":")[0], line.partition(":")[2].strip(), "us: forward, backward, optimizer")
    refused = [line for line in done.stdout.splitlines() if line.startswith("refused")]
    table.judge(name, "", f"exit code {done.returncode}, {len(refused)} kinds of calls refused", "0, none",
                done.returncode == 0 and not refused)


def complete(table, program, runner):
    """Every launch has its device row or is counted; prints the recording's cost in bytes."""
    outcome, place = runner.recorded(program, "--full")
    report = runner.report(place)
    events = report["ranks"][0].get("events", {})
    device = tuple(events.get(kind, 0) for kind in ("kernels", "copies", "memsets"))
    total = sum(events.values())
    size = runs.size_bytes(place)
    lost = runs.lost_of(report)
    figure = "{} kernels, {} copies, {} memsets".format(*device)
    if outcome.truth is None:
        table.judge("device rows", program.name, figure, "more than 0", sum(device) > 0)
    else:
        kernels, copies, memsets = outcome.truth  # a report counts copies and memsets together
        table.judge("device rows", program.name, figure, f"{kernels} kernels, {copies + memsets} copies and memsets",
                    (device[0], sum(device[1:])) == (kernels, copies + memsets))
    table.judge("losses", program.name, str(lost or "none"), "none", not lost)
    table.add("size", program.name, f"{size / max(total, 1):.1f} bytes an event, {size} bytes")
    for key in ("cupti.state", "cupti.version", "cupti.path", "driver.version", "cupti.setup_us",
                "cupti.answer_us", "cupti.largest_undelivered_ms"):
        if key in report["environment"]:
            table.add(key, program.name, report["environment"][key])


def equals_torch_profiler(table, program, runner):
    """The same (kernel, grid, block) as often, the same durations, the same copies and bytes."""
    trace = runner.folder / f"{program.name.replace(' ', '-')}.torch.json"
    runner.under_torch_profiler(program, trace)
    _, place = runner.recorded(program, "--full")
    compare(table, program.name, traces.device_work(trace), traces.device_work(runner.export(place)))


def compare(table, name, expected, ours):
    """Kernels that cuBLAS and cuDNN choose by trying differ from run to run: of these, the total is compared."""
    wanted, chosen = traces.without_chosen(expected.kernel_counts())
    found, our_chosen = traces.without_chosen(ours.kernel_counts())
    missing, added = wanted - found, found - wanted
    if chosen or our_chosen:
        apart = abs(chosen - our_chosen) / max(chosen, our_chosen)
        table.judge("kernels of libraries", name, f"{our_chosen} of {chosen}", f"within {CHOSEN_PERCENT:.0f} %",
                    100 * apart <= CHOSEN_PERCENT)
    table.judge("kernels by shape", name, f"{sum(found.values())} of {sum(wanted.values())} kernels, "
                f"{sum(missing.values())} missing, {sum(added.values())} more", "none missing, none more",
                bool(wanted or chosen) and not missing and not added)
    theirs, medians = expected.medians(), ours.medians()
    apart = [key for key in theirs if key in medians and
             abs(medians[key] - theirs[key]) > max(MEDIAN_US, theirs[key] * MEDIAN_PERCENT / 100)]
    table.judge("median durations", name, f"{len(theirs) - len(apart)} of {len(theirs)} kernels agree",
                f"within {MEDIAN_PERCENT:.0f} % or {MEDIAN_US:.0f} us", bool(theirs) and not apart)
    same = expected.copy_counts() == ours.copy_counts() and expected.memsets == ours.memsets
    copies = sum(count for count, _ in ours.copy_counts().values())
    table.judge("copies and bytes", name, f"{copies} copies, {ours.memsets} memsets", "equal", same)


# A finding about a tuned run may be true: where others use all cores, even good loaders are late, and a virtual machine's
# neighbours may do so for seconds. A rule that sees what is not there sees it every time.
TUNED_RUNS = 6


def habit(table, habit_program, runner, case, pairs):
    """The finding names the line and predicts a range; naive and tuned runs measure the gain."""
    name = f"{habit_program.name}: {case.name}"
    naive, tuned = habit_program.with_flags(*case.naive), habit_program.with_flags(*case.tuned)
    _, place = runner.recorded(naive)
    findings = [f for f in runner.report(place)["findings"] if f["rule"] == case.rule]
    table.judge("finding", name, case.rule if findings else "silent", case.rule, bool(findings))
    for _ in range(TUNED_RUNS):
        _, quiet = runner.recorded(tuned)
        still = [f for f in runner.report(quiet)["findings"] if f["rule"] == case.rule and f["severity"] != "note"]
        if not still:
            break
    table.judge("finding gone", name, still[0]["title"] if still else "silent", "silent when tuned", not still)
    if findings and case.line:
        line = programs.line_number(case.source, case.line)
        places = [f"{str(w['file']).rsplit('/', 1)[-1]}:{w['line']}" for f in findings for w in f["where"]]
        wanted = f"{case.source.name}:{line}"
        table.judge("source line", name, ", ".join(places[:3]), wanted, wanted in places)
    if not findings or pairs == 0:
        return
    saved = []
    for _ in range(pairs):
        before = runner.plain(naive).step_ms
        saved.append(before - runner.plain(tuned).step_ms)
    gain, measured = findings[0]["gain_ms_per_step"], measures.mean_of(saved)
    table.judge("gain", name, f"measured {measured.text('ms')}",
                f"predicted {gain['low']:.2f} to {gain['high']:.2f} ms",
                measured.overlaps(gain["low"], gain["high"]))


def survives(table, program, runner):
    """SIGKILL of the program in the middle: what was recorded is there, losses are counted."""
    for after_s in KILL_AFTER_S:
        place = runner.killed(program, after_s)
        report = runner.report(place)
        events = report["ranks"][0].get("events", {})
        lost = [item["detail"] for item in report["quality"] if item["kind"] == "undelivered_at_end"]
        table.judge("SIGKILL", program.name, f"after {after_s:.0f} s: {events.get('kernels', 0)} kernels; "
                    f"{'; '.join(lost) or 'all that was launched'}", "kernels are there", events.get("kernels", 0) > 0)
        size = runs.size_bytes(place)
        table.judge("size bound", program.name, f"{size} bytes", "2 GiB", size <= MAX_RECORDING_BYTES)
