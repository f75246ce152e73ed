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
# Of the trainer and its twin: pictures small enough for the loader to keep up with a GPU, and such as it cannot.
SMALL_PICTURES = ("--samples", "512", "--stored-size", "96")
LARGE_PICTURES = ("--samples", "256", "--stored-size", "448")
# cuDNN's gradients differ in their last bits from run to run. Weights that stay as they are show the forward pass alone.
SAME_LOSSES = ("--lr", "0", "--log-every", "1")
# The device the slower side: who reads the loss then cannot run ahead of it.
DEVICE_BOUND = ("--batch", "64", "--width", "256", "--workers", "8")


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    command: tuple
    python: bool = False  # may run under torch.profiler
    repeatable: tuple = ()  # flags with which it prints the same losses each time

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


def _habits(program, source, item, small, loader=(), workers="4", host_bound=(), device_bound=()):
    """`small`: the line that copies a small tensor from the host. `loader`: flags that make batches dear enough for the
    loader to matter, and so many workers that they keep up; `host_bound`, `device_bound`: that make the host or the
    device the slower side."""
    alone, enough = loader + ("--workers", "0"), loader + ("--workers", workers)
    cpu_tensors = host_bound + ("--cpu-tensors",)
    return [
        Habit("loader without workers", program, alone, enough, "input-bound", source, ""),
        Habit("item every step", program, device_bound + ("--item-every", "1"), device_bound, "host-sync", source, item),
        Habit("pageable batches", program, ("--pin-memory", "off"), ("--pin-memory", "on"), "pageable-copy", source, ""),
        Habit("tensors made on the CPU", program, cpu_tensors, host_bound, "cpu-tensor", source, small),
    ]


def _twin_habits(python, launch_bound):
    """Of the Python twin: what the trainer in C++ has no switch for."""
    return [
        Habit("launches one by one", launch_bound, (), ("--cuda-graph",), "launch-bound", TWIN, ""),
        Habit("empty_cache in the loop", python, ("--empty-cache-every", "1"), (), "allocation", TWIN,
              "torch.cuda.empty_cache()"),
    ]


def counted(binaries, *arguments):
    """The program that counts its own launches (tests/acceptance/launches.cpp)."""
    return Program("launches", (str(binaries / "launches"),) + arguments)


def gpu_programs(binaries, folder, steps):
    """`binaries`: folder of instrumented_trainer; absent when no CUDA LibTorch was found."""
    common = ("--device", "cuda", "--steps", str(steps), "--log-every", str(steps), "--data", str(folder / "data"),
              *SMALL_PICTURES)
    python = Program("train.py", (sys.executable, str(TWIN)) + common, True, SAME_LOSSES)
    programs = [
        python,
        dataclasses.replace(
            python.with_flags("--width", "8", "--batch", "8", "--image-size", "32"), name="train.py launch-bound"
        ),
        dataclasses.replace(python.with_flags("--cuda-graph"), name="train.py cuda graph"),
    ]
    habits = _twin_habits(python, programs[1])
    trainer = binaries / "instrumented_trainer"
    if trainer.exists():
        cpp = Program("instrumented_trainer", (str(trainer),) + common, repeatable=SAME_LOSSES)
        programs.insert(0, cpp)
        habits = _habits(cpp, TRAINING, "loss.item<double>()", "torch::ones({kClassCount}).to(device_)",
                         LARGE_PICTURES, "12", device_bound=DEVICE_BOUND) + habits
        products = DEVICE_BOUND + ("--model", "transformer", "--width", "1024")
        habits.append(Habit("products in float32", cpp, products, products + ("--amp", "bf16"), "full-precision", TRAINING, ""))
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
    item, small = "cudaMemcpyAsync(&loss, device_loss_", "cudaMemcpyAsync(device_noise_, noise.data()"
    return programs, _habits(loop, LOOP, item, small, ("--decode-us", "12000"), host_bound=HOST_BOUND)
