"""The programs that are run, as commands. A mode has one training loop with switches in C++ and,
on a GPU, its Python twin and shapes of load of their own."""

import dataclasses
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWIN = ROOT / "instrumented_trainer" / "train.py"
LOOP = ROOT / "tests" / "virtual_gpu" / "scenarios" / "training_loop.cpp"
# Of the loop on the virtual GPU: host work before each launch outlasts the launch's kernel by far.
HOST_BOUND = ("--kernel-us", "1", "--op-us", "8", "--decode-us", "50", "--batch-kib", "64")
TRAINING = ROOT / "instrumented_trainer" / "training.cpp"


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    command: tuple
    python: bool = False  # may run under torch.profiler

    def with_flags(self, *flags):
        return dataclasses.replace(self, command=self.command + flags)

    def with_command(self, command):
        return dataclasses.replace(self, command=command)


@dataclasses.dataclass(frozen=True)
class Habit:
    """One bad habit of a program: flags with it and without, and the finding that it must give."""

    name: str
    program: Program
    naive: tuple
    tuned: tuple
    rule: str
    source: pathlib.Path  # where the habit stands
    line: str  # a text of the very line; "" where the finding has no line to name


def line_number(path, text):
    """The number of the only line of `path` that holds `text`."""
    numbers = [n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    if len(numbers) != 1:
        raise SystemExit(f"{path}: '{text}' stands in {len(numbers)} lines, expected one")
    return numbers[0]


def _habits(program, source, item, noise, loader=(), host_bound=()):
    """`loader`: flags that make batches dear enough for the loader to matter; `host_bound`: that make
    the host the slower side."""
    alone, four = loader + ("--workers", "0"), loader + ("--workers", "4")
    cpu_tensors = host_bound + ("--cpu-tensors",)
    return [
        Habit("loader without workers", program, alone, four, "input-bound", source, ""),
        Habit("item every step", program, ("--item-every", "1"), (), "host-sync", source, item),
        Habit("pageable batches", program, ("--pin-memory", "off"), ("--pin-memory", "on"), "pageable-copy", source, ""),
        Habit("tensors made on the CPU", program, cpu_tensors, host_bound, "cpu-tensor", source, noise),
    ]


def counted(binaries, *arguments):
    """The program that counts its own launches (tests/acceptance/launches.cpp)."""
    return Program("launches", (str(binaries / "launches"),) + arguments)


def gpu_programs(binaries, folder, steps):
    """`binaries`: folder of instrumented_trainer; absent when no CUDA LibTorch was found."""
    common = ("--device", "cuda", "--steps", str(steps), "--log-every", str(steps), "--data", str(folder / "data"))
    python = Program("train.py", (sys.executable, str(TWIN)) + common, python=True)
    programs = [
        python,
        dataclasses.replace(
            python.with_flags("--width", "8", "--batch", "8", "--image-size", "32"), name="train.py launch-bound"
        ),
        dataclasses.replace(python.with_flags("--cuda-graph"), name="train.py cuda graph"),
    ]
    habits = []
    trainer = binaries / "instrumented_trainer"
    if trainer.exists():
        cpp = Program("instrumented_trainer", (str(trainer),) + common)
        programs.insert(0, cpp)
        habits = _habits(cpp, TRAINING, "loss.item<double>()", "torch::randn(batch.images.sizes(), made_on)")
    return programs, habits


def item_lines(mode, all_programs, habits):
    """(program, source, text of the line that reads the loss): with habits, and on a GPU the Python twin."""
    lines = [(case.program, case.source, case.line) for case in habits if case.rule == "host-sync"]
    twins = [program for program in all_programs if program.python][:1] if mode == "gpu" else []
    return lines + [(twin, TWIN, "self.last_loss = loss.item()") for twin in twins]


def virtual_programs(binaries, steps):
    loop = Program("training_loop", (str(binaries / "training_loop"), "--steps", str(steps)))
    programs = [
        loop,
        dataclasses.replace(loop.with_flags(*HOST_BOUND), name="training_loop launch-bound"),
        dataclasses.replace(loop.with_flags("--cuda-graph"), name="training_loop cuda graph"),
    ]
    item, noise = "cudaMemcpyAsync(&loss, device_loss_", "cudaMemcpyAsync(device_noise_, noise.data()"
    return programs, _habits(loop, LOOP, item, noise, ("--decode-us", "12000"), HOST_BOUND)
