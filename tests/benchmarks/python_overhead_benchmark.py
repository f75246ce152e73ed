"""What `trainprof run` at default settings costs a Python training loop on the CPU, stack sampler included. Two
processes run the same loop, one alone, one recorded; they take turns of a fraction of a second, every other pair the
other way round, so that a machine that grows slower or faster does so for both. While the first has its turn, all of
trainprof's own processes are stopped.

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

# Runs as many steps as a line from stdin says, then tells how long they took.
LOOP = """
import sys, time, torch
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
    return int(line) if line else sys.exit()
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
"""
PHASES = 5  # input wait, zero_grad, forward, backward, optimizer
TRAINING = ("1000000", "1024", "256")
STEPS_A_TURN = 10
TINY = ("10000", "8", "1")
TINY_STEPS_A_TURN = 250
MOST_PERCENT, MOST_US_A_PHASE, HALF_WIDTH_PERCENT = 1.0, 3.0, 0.5


class Loop:
    """A process that runs the loop."""

    def __init__(self, folder, trainprof, python, arguments, recorded):
        script = os.path.join(folder, "loop.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LOOP)
        run = [trainprof, "run", "--quiet", "--force", "-o", "run", "--"] if recorded else []
        self.process = subprocess.Popen([*run, python, script, *arguments], cwd=folder, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.process.stdout.readline() != "ready\n":
            sys.exit("the loop failed")
        self.own = self._own(trainprof) if recorded else []

    def _own(self, trainprof):
        """trainprof's processes, not the program's."""
        found = []
        for pid in [self.process.pid, *children(self.process.pid)]:
            if os.path.realpath(f"/proc/{pid}/exe") == os.path.realpath(trainprof):
                found.append(pid)
        return found

    def signal(self, number):
        for pid in self.own:
            try:
                os.kill(pid, number)
            except ProcessLookupError:  # it has done its steps
                pass

    def turn(self, steps):
        """Seconds a step: mean and median; None when there are no more steps."""
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return tuple(map(float, line.split())) if line else None

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
        return [int(child) for child in file.read().split()]


def pairs(trainprof, python, arguments, steps_a_turn):
    """(alone, recorded), each seconds a step as (mean, median), as long as there are steps."""
    with tempfile.TemporaryDirectory() as folder:
        alone = Loop(folder, trainprof, python, arguments, recorded=False)
        recorded = Loop(folder, trainprof, python, arguments, recorded=True)
        first = False
        try:
            while True:
                measured = {}
                for how in (first, not first):
                    recorded.signal(signal.SIGCONT if how else signal.SIGSTOP)
                    time.sleep(0.002)
                    measured[how] = (recorded if how else alone).turn(steps_a_turn)
                if not all(measured.values()):
                    break
                yield measured[False], measured[True]
                first = not first
        finally:
            recorded.signal(signal.SIGCONT)
            alone.end()
            recorded.end()


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


def tiny(trainprof, python, rounds):
    phase_us, alone_us = ([], []), []
    for _ in range(rounds):
        for number, (alone, recorded) in enumerate(pairs(trainprof, python, TINY, TINY_STEPS_A_TURN)):
            if number == 0:
                continue
            alone_us.append(1e6 * alone[1])
            for i in range(2):
                phase_us[i].append(1e6 * (recorded[i] - alone[i]) / PHASES)
    mean, half = interval(phase_us[0])
    fast_enough = mean - half <= MOST_US_A_PHASE
    print(f"ten thousand steps of {statistics.median(alone_us):.0f} us, {len(alone_us)} pairs: "
          f"{text(phase_us[0], 'us a phase')} (medians: {text(phase_us[1], 'us')}); "
          f"gate {MOST_US_A_PHASE} us: {'holds' if fast_enough else 'FAILS'}")
    return fast_enough


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trainprof, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    most_pairs = int(os.environ.get("TRAINPROF_BENCHMARK_PAIRS", "800"))
    holds = [training(trainprof, python, most_pairs), tiny(trainprof, python, 4)]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
