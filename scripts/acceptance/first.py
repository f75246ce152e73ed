"""The first questions to a new GPU, in the order in which their answers matter: does a program start, does it end, are
the times right, what does recording cost where nothing is recorded."""

import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import measures
import programs
import runs
import slots
import traces

START_LIMIT_S = 20
VERSION_LIMIT_S = 120
# Without a GPU for the program: no device, one that is not there, and on the virtual GPU a driver that does not start.
UNUSABLE = {"no device visible": {"CUDA_VISIBLE_DEVICES": ""},
            "a device that is not there": {"CUDA_VISIBLE_DEVICES": "99"}}
UNUSABLE_VIRTUAL = {"no device": {"VGPU_FAULTS": "no_device"}, "no driver": {"VGPU_FAULTS": "no_driver"}}
LONGEST_KERNEL_MS = 1_000  # no kernel of these programs takes a tenth of it
SHORT_PAUSE_MS = 2_000
SPIN_S = 5
INSIDE = pathlib.Path(__file__).resolve().parent / "profiler_inside.py"


def start(table, program, runner, virtual):
    """It starts and ends as it does alone, with a GPU and without."""
    cases = {"as it is": {}, **(UNUSABLE_VIRTUAL if virtual else UNUSABLE)}
    for name, variables in cases.items():
        alone = runner.timed(program.command, variables, START_LIMIT_S)
        recorded = runner.timed(runner.run_command(program), variables, START_LIMIT_S)
        same = alone.exit_code == recorded.exit_code is not None
        codes = f"exit code {recorded.exit_code} recorded, {alone.exit_code} alone"
        table.judge("starts and ends", program.name, f"{name}: {codes}", f"equal, within {START_LIMIT_S} s", same)


def killed_slots(table, program, runner, word="spinning", after_s=2.0):
    """SIGKILL of all so long after the word, while a kernel runs, some hundred behind it, or in the middle of training:
    which records lie in CUPTI's buffers."""
    place = runner.killed_at(program, word, after_s)
    files = sorted(place.rglob("*.slots"))
    lines = [line for path in files for line in slots.describe(path)]
    for line in lines:
        table.add("left by a kill", program.name, line)
    table.judge("left by a kill", program.name, f"{len(files)} files of slots, {len(lines)} slots in use", "1 or more",
                bool(lines))


def longest(table, program, runner, times, pause_ms=None):
    """No kernel is stretched over a pause, nothing is lost at a window's end, no run hangs. With `pause_ms` recording
    begins anew several times."""
    case = program.name if pause_ms is None else f"{program.name}, pauses of {pause_ms} ms"
    if pause_ms is not None:
        options = f"TRAINPROF_OPTIONS=pause_ms={pause_ms}"
        program = program.with_command(("env", options) + program.command)
    worst, kernels, lost = 0.0, [], {}
    for _ in range(times):
        _, place = runner.recorded(program)
        work = traces.device_work(runner.export(place))
        durations = [duration for found in work.kernels.values() for duration in found]
        kernels.append(len(durations))
        worst = max([worst] + durations)
        for kind, count in runner.lost(place).items():
            lost[kind] = lost.get(kind, 0) + count
        shutil.rmtree(place)
    table.judge("losses at windows' ends", case, str(lost or "none"), "none", not lost)
    table.judge("longest kernel", case,
                f"{worst / 1e3:.3f} ms in {times} runs, {min(kernels)} to {max(kernels)} kernels",
                f"at most {LONGEST_KERNEL_MS} ms, some kernels each time",
                min(kernels) > 0 and worst <= LONGEST_KERNEL_MS * 1e3)


def profiler_inside(table, runner):
    """torch.profiler around ten of 200 steps, within a recording: what each of the two sees."""
    program = runs.Command("torch.profiler inside", (sys.executable, str(INSIDE)))
    outcome, place = runner.recorded(program, "--full")
    seen = re.search(r"^torch.profiler saw (\d+) kernels", outcome.output, re.MULTILINE)
    theirs = int(seen.group(1)) if seen else 0
    report = runner.report(place)
    ours = report["ranks"][0].get("events", {}).get("kernels", 0)
    lost = [row["kind"] for row in report["quality"] if row["severity"] == "data_loss"]
    table.judge("torch.profiler inside", program.name,
                f"it saw {theirs} kernels, we {ours} around it, losses {lost or 'none'}",
                "both more than 0, no losses", theirs > 0 and ours > 0 and not lost)


def source_line(table, program, runner, source, text):
    """A read of the loss in every step is found at its own line, through libcuda's frames."""
    _, place = runner.recorded(program.with_flags("--item-every", "1"))
    places = [f"{str(site['file']).rsplit('/', 1)[-1]}:{site['line']}" for finding in runner.report(place)["findings"]
              if finding["rule"] == "host-sync" for site in finding["where"]]
    wanted = f"{source.name}:{programs.line_number(source, text)}"
    table.judge("line of .item()", program.name, ", ".join(places[:3]) or "no place", wanted, wanted in places)


def unwind_tables(table):
    """Whether native stacks pass the driver: one frame without a table ends them."""
    listing = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"libcuda\.so\.1 .*=> (\S+)", listing)
    if not found or shutil.which("readelf") is None:
        table.skip("unwind tables of libcuda", "", "no libcuda.so.1 in ldconfig's list, or no readelf")
        return
    sections = subprocess.run(["readelf", "-SW", found.group(1)], capture_output=True, text=True, check=False).stdout
    table.judge("unwind tables of libcuda", "", found.group(1), "has .eh_frame", ".eh_frame" in sections)


def device_memory(table, program, runner):
    """The most of the GPU's memory in use, alone and recorded: what CUPTI takes of it."""
    if shutil.which("nvidia-smi") is None:
        table.skip("memory of the GPU", program.name, "no nvidia-smi")
        return
    most = {}
    for name, run in (("alone", runner.plain), ("recorded", lambda p: runner.recorded(p, "--full"))):
        with _MemoryWatch() as watch:
            run(program)
        most[name] = watch.most_mib
    alone, recorded = most["alone"], most["recorded"]
    table.add("memory of the GPU", program.name,
              f"{alone} MiB alone, {recorded} MiB recorded: {recorded - alone} MiB more")


class _MemoryWatch:
    """The machine should have no other work: in containers processes cannot be told apart."""

    def __enter__(self):
        self.most_mib, self._ended = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _watch(self):
        command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
        while not self._ended.is_set():
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            self.most_mib = max([self.most_mib] + [int(n) for n in re.findall(r"^\d+", done.stdout, re.MULTILINE)])
            time.sleep(0.2)


def pause(table, program, runner, pairs, steps, limit_percent):
    """Steps of which nothing of the GPU is recorded, all but some ten: behind the first fifth of the run. Without CUPTI
    as well, which tells whose cost it is. Each way's times are told: machines whose speed changes need many pairs."""
    program = program.with_flags("--steps", str(steps), "--warmup", str(max(steps // 5, 180)),
                                 "--log-every", str(steps))
    plain, ways = [], {"": [], ", without CUPTI": []}
    for _ in range(pairs):
        plain.append(runner.plain(program).step_ms)
        for way, recorded in ways.items():
            options = "TRAINPROF_OPTIONS=gpu=off" if way else "TRAINPROF_OPTIONS="
            chosen = program.with_command(("env", options) + program.command)
            recorded.append(runner.recorded(chosen)[0].step_ms)
    bound = f"at most {limit_percent:.0f} %"
    table.add("step, plain", program.name, measures.list_of(plain, "ms"))
    for way, recorded in ways.items():
        ours = measures.relative_percent(recorded, plain)
        table.add(f"step, recorded{way}", program.name, measures.list_of(recorded, "ms"))
        table.judge_at_most(f"step overhead in pauses{way}", program.name, ours, limit_percent, "%", bound)


def versions(table, program, runner, libraries):
    """The same program through each libcupti, as its one client and beside others (from 13.3 on): it ends well, and
    all launches are there or the reason why not."""
    for library, scope in itertools.product(libraries, ("process", "subscriber")):
        place = runner.next_place()
        command = runner.run_command(program, "--full", place=place)
        chosen = {"TRAINPROF_CUPTI": str(library), "TRAINPROF_CUPTI_SCOPE": scope}
        outcome = runner.timed(command, chosen, VERSION_LIMIT_S)
        report = runner.report(place)
        environment, kernels = report["environment"], report["ranks"][0].get("events", {}).get("kernels", 0)
        state = environment.get("cupti.state", "no state")
        whole = outcome.truth is not None and kernels == outcome.truth[0]
        told = kernels == 0 and state not in ("recording", "no state")
        version = environment.get("cupti.version", "not used")
        table.judge("CUPTI release", program.name,
                    f"{library}, {scope}: {version}, exit code {outcome.exit_code}, {kernels} kernels, {state}",
                    "program ends well; all kernels, or why not",
                    outcome.exit_code == 0 and (whole or told))
