"""Runs scenarios: alone for the truth, and under trainprof for what it says."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys

# Of a run beside busy loops, and of the loops: what else the machine does counts little then.
NICE = -15
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "SLURM_", "TRAINPROF", "NVTX_INJECTION",
           "CUDA_INJECTION", "VGPU_")
TIMEOUT_S = 120


def go_apart():
    with contextlib.suppress(OSError):  # not permitted: as the machine is
        os.setpriority(os.PRIO_PROCESS, 0, NICE)


class Machine:
    """Where programs are and how they are run. build: the build folder; record: options of `trainprof run`; steps:
    0 for the scenarios' own; apart: before what else the machine does, together with busy_loops()."""

    def __init__(self, build, folder, quiet=False, record=(), steps=0, apart=False):
        self.build = os.path.abspath(build)
        self.folder = os.path.abspath(folder)
        self.quiet = quiet
        self.record = list(record)
        self.steps = steps
        self.before_exec = go_apart if apart else None
        self.program = os.path.join(self.build, "bin", "scenarios")
        self.trainprof = os.path.join(self.build, "bin", "trainprof")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
        self.environment["LD_LIBRARY_PATH"] = os.path.join(self.build, "lib", "virtual_gpu")
        self.environment["VGPU_STATE"] = "/dev/null"

    def scenarios(self):
        """Names, in order."""
        listing = self._output([self.program, "--list"])
        return [line.split("\t")[0] for line in listing.splitlines()]

    def _command(self, name, habit, seed):
        return ([self.program, name, "--habit", habit, "--seed", str(seed), "--steps", str(self.steps)] +
                (["--quiet"] if self.quiet else []))

    def plain(self, name, habit, seed):
        """The truth of a run that nobody watches."""
        return json.loads(self._output(self._command(name, habit, seed)))

    def watched(self, name, habit, seed):
        """The truth of a recorded run, and the folder of its recording."""
        recording = os.path.join(self.folder, f"{name}-{habit}-{seed}")
        shutil.rmtree(recording, ignore_errors=True)
        output = self._output([self.trainprof, "run", "-o", recording] + self.record + ["--"] +
                              self._command(name, habit, seed))
        lines = [line for line in output.splitlines() if line.startswith('{"scenario"')]
        if len(lines) != 1:
            raise RuntimeError(f"{name}: no truth in the output of a recorded run:\n{output}")
        return json.loads(lines[0]), recording

    def report(self, recording, trainprof=None):
        """What trainprof says of a recording: its JSON report."""
        return json.loads(self._output([trainprof or self.trainprof, "report", recording, "--format", "json"]))

    def _output(self, command):
        result = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=TIMEOUT_S,
                                cwd=self.folder, check=False, preexec_fn=self.before_exec)
        if result.returncode != 0:
            raise RuntimeError(f"exit code {result.returncode} of {' '.join(command)}:\n{result.stderr[-2000:]}")
        return result.stdout


@contextlib.contextmanager
def busy_loops(count):
    """So many processes that do nothing but use a processor, meanwhile."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=go_apart) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@contextlib.contextmanager
def beside(command):
    """Runs a shell command over and over meanwhile, as a build ("" runs nothing). RuntimeError where it failed."""
    if not command:
        yield
        return
    # In a session of its own, as somebody else's build is: the kernel divides processors by session (autogroup).
    work = subprocess.Popen(["sh", "-c", f"while {command}; do :; done"], preexec_fn=go_apart, start_new_session=True,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
        if work.poll() is not None:
            raise RuntimeError(f"what was to run beside failed: {command}")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(work.pid, signal.SIGKILL)
        work.wait()


# One processor's part of disturbed(): bursts of 0.2 to 3 ms, so long apart that they are that share of the time.
BURSTS = """
import os, random, sys, time
share, processor, priority = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
os.sched_setaffinity(0, {processor})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
print("ready", flush=True)
while True:
    burst = random.uniform(0.2e-3, 3e-3)
    end = time.perf_counter() + burst
    while time.perf_counter() < end:
        pass
    time.sleep(burst * (1 - share) / share)
"""
BURSTS_PRIORITY = 30  # over a quiet scenario's, and over its rival's


@contextlib.contextmanager
def disturbed(share):
    """Takes that share of each processor in bursts, from everybody: a load that is the same on any machine."""
    taken = [subprocess.Popen([sys.executable, "-c", BURSTS, str(share), str(processor), str(BURSTS_PRIORITY)],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
             for processor in sorted(os.sched_getaffinity(0)) if share > 0]
    try:
        for process in taken:
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"no bursts here: {process.stderr.read()[-300:]}")
        yield
    finally:
        for process in taken:
            process.kill()
            process.communicate()


def states_of(truth):
    """What is on in each run that a scenario needs: all habits, none, and, of several, all but one."""
    names = [habit["name"] for habit in truth["habits"]]
    if not names:
        return ["off"]
    if len(names) == 1:
        return ["on", "off"]
    return ["on", "off"] + [",".join(n for n in names if n != left_out) for left_out in names]


def measure(machine, name, seed, plain_runs, note=lambda text: None):
    """All runs of a scenario with a seed, interleaved, so that what disturbs the machine meets all of them.

    {"scenario", "seed", "plain": {state: [truth, ...]}, "watched": {state: {"truth", "recording"}}}. Recorded are the
    states "on" and "off" alone.
    """
    result = {"scenario": name, "seed": seed, "plain": {}, "watched": {}}
    states = states_of(machine.plain(name, "off", seed))
    for turn in range(plain_runs):
        for state in states:
            note(f"{name} seed {seed} {state}")
            result["plain"].setdefault(state, []).append(machine.plain(name, state, seed))
            if turn == 0 and state in ("on", "off"):
                truth, recording = machine.watched(name, state, seed)
                result["watched"][state] = {"truth": truth, "recording": recording}
    return result
