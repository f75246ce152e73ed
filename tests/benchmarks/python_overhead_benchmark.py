"""What `trainprof run` at default settings costs a Python training loop on the CPU, stack sampler included. Within a
recorded process turns of a fraction of a second alternate, in pairs, every other pair the other way round: with the
hooks that it has, and with torch's functions as they were and all of trainprof's own processes stopped. So both run with
the same memory at the same addresses: between two processes that alone makes some 10 % of a loop like this one.

  python3 tests/benchmarks/python_overhead_benchmark.py build/release/bin/trainprof PYTHON-WITH-TORCH  # ten minutes

Prints the overhead of a step of some 20 ms with its 95 % interval (gate: 1 %), and microseconds a phase of ten thousand
steps that do next to nothing (gate: 3), of the means and of the medians of turns: rare costs, as the sampler's, are in
the means alone. Pairs are added until the half-width of the first is half a percent, or TRAINPROF_BENCHMARK_PAIRS (800)
are done. Exit status: 0 all gates hold, 1 one does not.
"""
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import machine_unit

# Runs as many steps as a line from stdin says, with hooks (1) or without (0), then tells how long they took.
LOOP = """
import gc, sys, threading, time, torch
from torch.optim import optimizer as optimizers
from torch.utils.data import dataloader

class Hooks:
    def __init__(self):
        variable = torch.autograd.Variable
        engine = variable._execution_engine
        assert type(engine).__name__ == "_ImperativeEngine" and len(type(engine).__mro__) == 3, "not recorded"
        self.attributes = [(variable, "_execution_engine", engine, type(engine).__mro__[1]())]
        for owner, name in ((dataloader._BaseDataLoaderIter, "__next__"), (dataloader.DataLoader, "__iter__"),
                            (optimizers.Optimizer, "zero_grad"), (threading.Condition, "wait")):
            ours = getattr(owner, name)
            self.attributes.append((owner, name, ours, ours.__wrapped__))
        self.tables = [(table, dict(table)) for table in (optimizers._global_optimizer_pre_hooks,
                                                          optimizers._global_optimizer_post_hooks)]
        assert all(entries for table, entries in self.tables)
        self.callbacks = list(gc.callbacks)
        self.on = True

    def switch(self, on):
        if on == self.on:
            return
        self.on = on
        for owner, name, ours, original in self.attributes:
            setattr(owner, name, ours if on else original)
        for table, entries in self.tables:
            table.update(entries) if on else table.clear()
        gc.callbacks[:] = self.callbacks if on else []

hooks = Hooks()
torch.set_num_threads(1)
steps, width, batch = map(int, sys.argv[1:])
model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(4096 if width > 64 else steps * batch, width))
loader = torch.utils.data.DataLoader(data, batch_size=batch)
def batches():
    done = 0
    while done < steps:
        for inputs, in loader:
            yield inputs
            done += 1
            if done == steps:
                return
def turn():
    line = sys.stdin.readline()
    if not line:
        sys.exit()
    count, on = map(int, line.split())
    hooks.switch(on == 1)
    return count
print("ready", flush=True)
times, left = [], turn()
before = time.perf_counter()
for inputs in batches():
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    now = time.perf_counter()
    times.append(now - before)
    before = now
    if len(times) == left:
        times.sort()
        print(sum(times) / len(times), times[len(times) // 2], flush=True)
        times, left = [], turn()
        before = time.perf_counter()
print(flush=True)
"""
PHASES = 5  # input wait, zero_grad, forward, backward, optimizer
TRAINING = ("1000000", "1024", "256")
STEPS_A_TURN = 10
TINY = ("10000", "8", "1")
TINY_STEPS_A_TURN = 250
MOST_PERCENT, MOST_US_A_PHASE, HALF_WIDTH_PERCENT = 1.0, 3.0, 0.5


class Loop:
    """A recorded process that runs the loop."""

    def __init__(self, folder, trainprof, python, arguments):
        script = os.path.join(folder, "loop.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LOOP)
        run = [trainprof, "run", "--quiet", "--force", "-o", "run", "--", python, script, *arguments]
        self.process = subprocess.Popen(run, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the loop failed")
        pids = [self.process.pid, *children(self.process.pid)]
        self.own = [pid for pid in pids if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(trainprof)]

    def signal(self, number):
        """To trainprof's processes, not the program's."""
        for pid in self.own:
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # the program has done its steps
                pass

    def turn(self, steps, on):
        """Seconds a step: mean and median; None when there are no more steps."""
        self.signal(signal.SIGCONT if on else signal.SIGSTOP)
        time.sleep(0.002)
        self.process.stdin.write(f"{steps} {int(on)}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return tuple(map(float, line.split())) if line else None

    def end(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]


def pairs(trainprof, python, arguments, steps_a_turn):
    """(without hooks, with), each seconds a step as (mean, median), as long as there are steps."""
    with tempfile.TemporaryDirectory() as folder:
        loop = Loop(folder, trainprof, python, arguments)
        first = False
        try:
            while True:
                measured = {on: loop.turn(steps_a_turn, on) for on in (first, not first)}
                if not all(measured.values()):
                    break
                yield measured[False], measured[True]
                first = not first
        finally:
            loop.end()


def interval(values):
    """Mean and half-width of its 95 % interval."""
    if len(values) < 2:
        return values[0], math.inf
    student = 1.96 + 2.8 / (len(values) - 1)  # within 1 % from seven pairs on
    return statistics.fmean(values), student * statistics.stdev(values) / math.sqrt(len(values))


def text(values, unit):
    return "%+.2f +- %.2f %s" % (*interval(values), unit)


def training(trainprof, python, most_pairs):
    """Whether the gate holds."""
    percents, alone_ms = ([], []), []
    for alone, recorded in pairs(trainprof, python, TRAINING, STEPS_A_TURN):
        alone_ms.append(1e3 * alone[1])
        if len(alone_ms) <= 5:
            continue  # both warm up
        for i in range(2):
            percents[i].append(100 * (recorded[i] / alone[i] - 1))
        done = len(percents[0])
        if sys.stderr.isatty():
            print(f"\r{done} pairs: {text(percents[0], '%')}  ", end="", file=sys.stderr)
        if done >= most_pairs or (done >= 40 and interval(percents[0])[1] <= HALF_WIDTH_PERCENT):
            break
    mean, half = interval(percents[0])
    low_enough = mean - half <= MOST_PERCENT
    print(f"training loop, {statistics.median(alone_ms):.1f} ms a step, {len(percents[0])} pairs: "
          f"{text(percents[0], '%')} (medians: {text(percents[1], '%')}); "
          f"gate {MOST_PERCENT} %: {'holds' if low_enough else 'FAILS'}")
    return low_enough


def tiny(trainprof, python, rounds, slowness):
    phase_us, alone_us = ([], []), []
    for _ in range(rounds):
        for number, (alone, recorded) in enumerate(pairs(trainprof, python, TINY, TINY_STEPS_A_TURN)):
            if number == 0:
                continue
            alone_us.append(1e6 * alone[1])
            for i in range(2):
                phase_us[i].append(1e6 * (recorded[i] - alone[i]) / PHASES)
    mean, half = interval(phase_us[0])
    most_us = MOST_US_A_PHASE * slowness
    fast_enough = mean - half <= most_us
    print(f"ten thousand steps of {statistics.median(alone_us):.0f} us, {len(alone_us)} pairs: "
          f"{text(phase_us[0], 'us a phase')} (medians: {text(phase_us[1], 'us')}); "
          f"gate {most_us:.1f} us: {'holds' if fast_enough else 'FAILS'}")
    return fast_enough


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trainprof, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    most_pairs = int(os.environ.get("TRAINPROF_BENCHMARK_PAIRS", "800"))
    slowness = machine_unit.slowness()
    holds = [training(trainprof, python, most_pairs), tiny(trainprof, python, 4, slowness)]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
