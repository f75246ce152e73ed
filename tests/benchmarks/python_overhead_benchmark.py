"""What `trainprof run` at default settings costs a Python training loop on the CPU, by interleaved pairs: the script alone,
then recorded (every other pair the other way round), each a process of its own that times its own steps.

  python3 tests/benchmarks/python_overhead_benchmark.py build/release/bin/trainprof PYTHON-WITH-TORCH   # up to ten minutes

Prints the overhead of a step with its 95 % interval for a loop of some 20 ms a step (gate: 1 %), and microseconds a phase for
one that does next to nothing, ten thousand times (gate: 3). Pairs are added until the half-width of the first is half a
percent, or TRAINPROF_BENCHMARK_PAIRS (60) are done. Exit status: 0 all gates hold, 1 one does not.
"""
import math
import os
import statistics
import subprocess
import sys
import tempfile

LOOP = """
import sys, time, torch
torch.set_num_threads(1)
steps, width, batch = map(int, sys.argv[1:])
model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.randn(steps * batch, width))
times = []
before = time.perf_counter()
for inputs, in torch.utils.data.DataLoader(data, batch_size=batch):
    optimizer.zero_grad()
    model(inputs).square().mean().backward()
    optimizer.step()
    now = time.perf_counter()
    times.append(now - before)
    before = now
times.sort()
print(times[len(times) // 2])
"""
PHASES = 5  # input wait, zero_grad, forward, backward, optimizer
TRAINING = ("150", "1024", "256")
TINY = ("10000", "8", "1")
MOST_PERCENT, MOST_US_A_PHASE, HALF_WIDTH_PERCENT = 1.0, 3.0, 0.5


def median_step(trainprof, python, arguments, recorded):
    with tempfile.TemporaryDirectory() as folder:
        script = os.path.join(folder, "loop.py")
        with open(script, "w", encoding="utf-8") as file:
            file.write(LOOP)
        run = [trainprof, "run", "--quiet", "-o", "run", "--"] if recorded else []
        result = subprocess.run([*run, python, script, *arguments], cwd=folder, capture_output=True, check=False)
        if result.returncode != 0:
            sys.exit(f"the loop failed:\n{result.stderr.decode()}")
        return float(result.stdout)


def pairs(trainprof, python, arguments):
    """Seconds a step, (alone, recorded), without end."""
    first = False
    while True:
        measured = {how: median_step(trainprof, python, arguments, how) for how in (first, not first)}
        first = not first
        yield measured[False], measured[True]


def interval(values):
    """Mean and half-width of its 95 % interval."""
    if len(values) < 2:
        return statistics.fmean(values), math.inf
    student = 1.96 + 2.8 / (len(values) - 1)  # within 1 % from seven pairs on
    return statistics.fmean(values), student * statistics.stdev(values) / math.sqrt(len(values))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trainprof, python = os.path.abspath(sys.argv[1]), sys.argv[2]
    most_pairs = int(os.environ.get("TRAINPROF_BENCHMARK_PAIRS", "60"))
    least_pairs = min(8, most_pairs)

    percents, alone_ms = [], []
    for alone, recorded in pairs(trainprof, python, TRAINING):
        percents.append(100 * (recorded / alone - 1))
        alone_ms.append(1e3 * alone)
        mean, half = interval(percents)
        done = len(percents)
        if sys.stderr.isatty():
            print(f"\r{done} pairs: {mean:+.2f} +- {half:.2f} %", end="", file=sys.stderr)
        if done >= most_pairs or (done >= least_pairs and half <= HALF_WIDTH_PERCENT):
            break
    low_enough = mean - half <= MOST_PERCENT
    print(f"training loop, {statistics.median(alone_ms):.1f} ms a step: {mean:+.2f} % +- {half:.2f} ({done} pairs); "
          f"gate {MOST_PERCENT} %: {'holds' if low_enough else 'FAILS'}")

    alone_us, phase_us = [], []
    for alone, recorded in pairs(trainprof, python, TINY):
        alone_us.append(1e6 * alone)
        phase_us.append(1e6 * (recorded - alone) / PHASES)
        if len(phase_us) >= least_pairs:
            break
    mean, half = interval(phase_us)
    fast_enough = mean - half <= MOST_US_A_PHASE
    print(f"ten thousand steps of {statistics.median(alone_us):.0f} us: {mean:+.2f} us a phase +- {half:.2f} "
          f"({len(phase_us)} pairs); gate {MOST_US_A_PHASE} us: {'holds' if fast_enough else 'FAILS'}")
    return 0 if low_enough and fast_enough else 1


if __name__ == "__main__":
    sys.exit(main())
