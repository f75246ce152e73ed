"""Forks children that train, and end each in its own way at its own moment. Arguments: seed, how many. Prints of each
how it ended and what it said; whoever compares two such lists knows what the children could tell apart.

One import of torch serves them all: it takes longer than all that they do."""
import atexit
import os
import queue
import random
import signal
import sys
import threading
import time

import torch
from truth import Samples, make_model
from torch.utils.data import DataLoader

STEPS = 6
HANGS_S = 30


class Broken(Samples):
    def __init__(self, error):
        super().__init__(8 * STEPS, 0)
        self.error = error

    def __getitem__(self, i):
        if i == 20 and self.error:
            raise self.error
        return super().__getitem__(i)


def train(step_ends=lambda step: None, error=None, workers=0, endless=False):
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    while True:
        for step, (x, y) in enumerate(DataLoader(Broken(error), batch_size=8, num_workers=workers)):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            if step == 3:
                step_ends("forward")
                loss.register_hook(lambda gradient: step_ends("backward"))
            loss.backward()
            optimizer.step()
            if step == 3:
                step_ends("step")
        if not endless:
            return


def raises(error, *moments):
    def step_ends(moment):
        if moment in moments:
            raise error

    return step_ends


def in_thread(function, daemon=False):
    thread = threading.Thread(target=function, daemon=daemon)
    thread.start()
    if not daemon:
        thread.join()


def forks(end):
    child = os.fork()
    if child == 0:
        train()
        end()
    train()
    say("its child", os.waitpid(child, 0)[1])


def at_exit():
    atexit.register(say, "first registered")
    train()
    atexit.register(say, "second registered")


def calls(function, argument, at):
    def step_ends(moment):
        if moment == at:
            function(argument)

    return step_ends


def waits_for_ever():
    """In Python alone: torch itself aborts one in seven programs that end while a thread is in its code."""
    while True:
        try:
            queue.Queue().get(timeout=0.0002)
        except queue.Empty:
            pass


def say(*words):
    print(*words, flush=True)


def killed(number):
    """By its parent, at any moment."""
    def way():
        if number == signal.SIGINT:
            signal.signal(number, signal.default_int_handler)
        say("trains")
        train(endless=True)

    way.number = number
    return way


WAYS = {
    "error in the dataset": lambda: train(error=ValueError("a sample")),
    "exit in the dataset": lambda: train(error=SystemExit(3)),
    "error in a worker": lambda: train(error=ValueError("a sample"), workers=1),
    "error after forward": lambda: train(raises(KeyError("forward"), "forward")),
    "error in backward": lambda: train(raises(OSError("backward"), "backward")),
    "exit in backward": lambda: train(raises(SystemExit(4), "backward")),
    "interrupt in backward": lambda: train(raises(KeyboardInterrupt(), "backward")),
    "SIGINT in backward": lambda: train(calls(signal.raise_signal, signal.SIGINT, "backward")),
    "error after the step": lambda: train(raises(RuntimeError("step"), "step")),
    "exit after the step": lambda: train(raises(SystemExit("a message"), "step")),
    "_exit after the step": lambda: train(calls(os._exit, 5, "step")),
    "abort in backward": lambda: train(calls(signal.raise_signal, signal.SIGABRT, "backward")),
    "exit in a thread": lambda: in_thread(lambda: train(raises(SystemExit(6), "step"))),
    "error in a thread": lambda: in_thread(lambda: train(raises(ValueError("thread"), "step"))),
    "a thread that goes on": lambda: (in_thread(waits_for_ever, daemon=True), train()),
    "order at exit": at_exit,
    "a fork that ends": lambda: forks(lambda: sys.exit(7)),
    "a fork that is gone": lambda: forks(lambda: os._exit(8)),
    "another program": lambda: (train(), os.execv("/bin/sh", ["sh", "-c", "exit 9"])),
    "killed": killed(signal.SIGKILL),
    "terminated": killed(signal.SIGTERM),
    "interrupted": killed(signal.SIGINT),
    "hung up": killed(signal.SIGHUP),
    "crashed": killed(signal.SIGSEGV),
}


def wait(child):
    end = time.monotonic() + HANGS_S
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return status
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def run(number, name, delay_s):
    way = WAYS[name]
    kills = getattr(way, "number", None)
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(writes, 1)
        os.dup2(writes, 2)
        os.close(reads)
        os.close(writes)
        return way  # at the top of the script, as any other
    os.close(writes)
    with os.fdopen(reads, "rb") as output:
        text = b""
        if kills:
            text = output.readline()
            time.sleep(delay_s)
            os.kill(child, kills)
        status = wait(child)
        if not kills or status == "hangs":
            text += output.read()
    lines = [line for line in text.decode().splitlines() if "0x" not in line]
    say(number, name, status, lines)
    return None


def main(seed, count):
    chance = random.Random(seed)
    names = sorted(WAYS)
    chance.shuffle(names)
    for i in range(count):
        way = run(i, names[i % len(names)], chance.uniform(0, 0.15))
        if way:
            return way
    try:
        say("left over", os.waitpid(-1, os.WNOHANG))
    except ChildProcessError:
        say("none left")
    return lambda: None


train()
main(int(sys.argv[1]), int(sys.argv[2]))()
