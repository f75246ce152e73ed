"""Runs programs: plain, under `trainprof run`, under torch.profiler; and reads what they print."""

import dataclasses
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

WITH_TORCH_PROFILER = pathlib.Path(__file__).resolve().parent / "with_torch_profiler.py"
TRUTH = re.compile(r"^device did (\d+) kernels, (\d+) copies, (\d+) memsets$", re.MULTILINE)
MEAN = re.compile(r"^mean of \d+ steps after warm-up: ([\d.]+) ms/step", re.MULTILINE)
TIMEOUT_S = 240
# The kernel's word on a process that a fault ended: where, and in which library.
FAULTS = re.compile(r"^.*(?:segfault at|general protection fault|trap \w+).*$", re.MULTILINE)
SHELL_SIGNAL = 128  # a supervisor's exit code is that much and the signal


@dataclasses.dataclass(frozen=True)
class Command:
    name: str
    command: tuple


@dataclasses.dataclass
class Outcome:
    exit_code: int
    output: str
    errors: str

    @property
    def step_ms(self):
        found = MEAN.search(self.output)
        return float(found.group(1)) if found else None

    @property
    def truth(self):
        """(kernels, copies, memsets) that the program or the virtual GPU counted itself; None without."""
        found = TRUTH.search(self.output)
        return tuple(int(count) for count in found.groups()) if found else None

    def losses(self):
        return re.findall(r"^step \d+ loss ([\d.na-]+)", self.output, re.MULTILINE)


class Runner:
    """`trainprof`: the program under test. `environment`: of every run."""

    def __init__(self, trainprof, folder, environment):
        self.trainprof, self.folder = str(trainprof), folder
        # A Python that crashes tells where each of its threads was.
        self.environment = {"PYTHONFAULTHANDLER": "1", **environment}
        self.recordings = 0

    def _run(self, command):
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, timeout=TIMEOUT_S, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def timed(self, command, variables, limit_s):
        """With more in its environment. The exit code is None where it did not end in time; all of it is then
        killed."""
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              env={**self.environment, **variables}) as process:
            try:
                output, errors = process.communicate(timeout=limit_s)
                return Outcome(process.returncode, output, errors)
            except subprocess.TimeoutExpired:
                _kill_tree(process.pid)
                output, errors = process.communicate()
                return Outcome(None, output, errors)

    def run_command(self, program, *flags, place=None):
        return (self.trainprof, "run", *flags, "--output", str(place or self.next_place()), "--", *program.command)

    def plain(self, program):
        return self._need_mean(self._run(program.command), program.name)

    def recorded(self, program, *flags):
        """The outcome and the folder of the recording."""
        place = self.next_place()
        command = self.run_command(program, *flags, place=place)
        return self._need_mean(self._run(command), f"trainprof run -- {program.name}"), place

    def under_torch_profiler(self, program, trace):
        python, script, *arguments = program.command
        command = (python, str(WITH_TORCH_PROFILER), str(trace), script, *arguments)
        return self._need_mean(self._run(command), f"torch.profiler around {program.name}")

    def killed(self, program, after_s):
        """SIGKILLs the program with all that it has started (torchrun's workers), not its supervisor. Returns the
        recording's folder."""
        place = self.next_place()
        command = self.run_command(program, "--full", place=place)
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment
        ) as supervisor:
            time.sleep(after_s)
            for child in _children(supervisor.pid):
                _kill_tree(child)
            supervisor.wait(TIMEOUT_S)
        return place

    def killed_at(self, program, word, after_s):
        """SIGKILLs supervisor and program so long after the program has printed the word. Nothing is sealed then."""
        place = self.next_place()
        command = self.run_command(program, "--full", place=place)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              env=self.environment) as supervisor:
            for line in supervisor.stdout:
                if word in line:
                    break
            time.sleep(after_s)
            _kill_tree(supervisor.pid)
        return place

    def report(self, place):
        done = self._run((self.trainprof, "report", str(place), "--format", "json"))
        if done.exit_code != 0:
            raise RuntimeError(f"trainprof report {place}: {done.errors.strip()}")
        return json.loads(done.output)

    def lost(self, place):
        """What the recording lacks, by kind; as report()."""
        return lost_of(self.report(place))

    def export(self, place):
        target = place.with_suffix(".json.gz")
        done = self._run((self.trainprof, "export", str(place), "-o", str(target)))
        if done.exit_code != 0:
            raise RuntimeError(f"trainprof export {place}: {done.errors.strip()}")
        return target

    def doctor(self):
        return self._run((self.trainprof, "doctor"))

    def next_place(self):
        self.recordings += 1
        return self.folder / f"recording-{self.recordings:03}"

    def _need_mean(self, outcome, name):
        if outcome.exit_code != 0 or outcome.step_ms is None:
            last = (outcome.errors.strip().splitlines() or ["no message"])[-1]
            log = self.folder / f"failed-{self.recordings:03}.txt"
            log.write_text(outcome.output + outcome.errors)
            raise RuntimeError(f"{name}: exit code {outcome.exit_code}: {last} ({log.name}){fault_of(outcome)}")
        return outcome


def fault_of(outcome):
    """", the kernel says: ..." of a program that a signal ended, where the kernel's log can be read; else ""."""
    if outcome.exit_code is None or 0 <= outcome.exit_code <= SHELL_SIGNAL:
        return ""
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout
    faults = FAULTS.findall(log)
    return f", the kernel says: {faults[-1].strip()}" if faults else ""


def lost_of(report):
    return {row["kind"]: row["count"] for row in report["quality"] if row["severity"] == "data_loss"}


def _children(pid):
    listing = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listing.read_text().split()] if listing.exists() else []


def _kill_tree(pid):
    """From the top: who is gone starts nothing in place of those that die."""
    below = _children(pid)
    _kill(pid)
    for child in below:
        _kill_tree(child)


def _kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it ended by itself


def size_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def cupti_of_torch():
    """The libcupti among the packages of this Python, or None."""
    probe = "import importlib.util as u; print(*(u.find_spec('nvidia') or u.find_spec('torch')).submodule_search_locations)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    for place in done.stdout.split():
        for found in sorted(pathlib.Path(place).rglob("libcupti.so.*")):
            return str(found)
    return None


def python_of_torch():
    """(version, CUDA version) of this Python's torch, or None."""
    probe = "import torch; print(torch.__version__, torch.version.cuda)"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else None
