"""What the scripts of these tests share: a small model, a slow dataset, and a stopwatch whose figures, in ms of each
step, go into the file truth.json."""
import contextlib
import json
import time

import torch

torch.set_num_threads(1)
torch.manual_seed(0)
WIDTH = 512


def make_model():
    layers = [torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()] * 4
    return torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, 10))


class Samples(torch.utils.data.Dataset):
    def __init__(self, count, seconds=0.001):
        self.count, self.seconds = count, seconds

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        time.sleep(self.seconds)
        return torch.sin(torch.arange(WIDTH) * float(i)), i % 10


class Stopwatch:
    def __init__(self):
        self.steps = [{}]

    @contextlib.contextmanager
    def of(self, phase):
        begin = time.perf_counter()
        try:
            yield
        finally:
            self.add(phase, time.perf_counter() - begin)

    def add(self, phase, seconds):
        self.steps[-1][phase] = self.steps[-1].get(phase, 0) + 1000 * seconds

    def step_ends(self):
        self.steps.append({})

    def watched(self, iterable):
        """Its elements; the time until each counts as input."""
        iterator = iter(iterable)
        while True:
            begin = time.perf_counter()
            try:
                element = next(iterator)
            except StopIteration:
                return
            self.add("input_wait", time.perf_counter() - begin)
            yield element

    def save(self, path="truth.json"):
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self.steps, file)
