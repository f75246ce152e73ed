"""Errors of the user's in and below all that is watched. Their tracebacks go to stderr, the last one by itself."""
import copy
import os
import queue
import traceback

import torch
from truth import Samples, make_model
from torch.utils.data import DataLoader, IterableDataset


class Broken(Samples):
    def __getitem__(self, i):
        if i == 20:
            raise KeyError("sample %d is broken" % i)
        return super().__getitem__(i)


class BrokenStream(IterableDataset):
    def __iter__(self):
        yield 1
        raise OSError("the stream ended")


class Frozen(Exception):
    def __setattr__(self, name, value):
        raise AttributeError("it is frozen")


def no_batch(samples):
    raise Frozen("no batch of %d" % len(samples))


class Layer(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        try:
            {}["missing"]
        except KeyError:
            raise ValueError("no gradient")


model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")


def broken_closure():
    optimizer.zero_grad()
    return 1 / 0


def reentrant():
    x = torch.ones(2, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    loss.backward()


def sum_of(iterable):
    return sum(len(batch) for batch in iterable)


def interrupted():
    def batches():
        yield [1]
        raise KeyboardInterrupt

    return sum_of(batches())


def profile_twice():
    with torch.autograd.profiler.profile():
        copy.deepcopy(torch.autograd.profiler._prepare_profiler)(None, {torch.profiler.ProfilerActivity.CPU})


def not_there():
    import torch.not_there


CASES = [
    lambda: sum_of(DataLoader(Broken(40, 0), batch_size=8)),
    lambda: sum_of(DataLoader(Broken(40, 0), batch_size=8, num_workers=1)),
    lambda: sum_of(DataLoader(BrokenStream())),
    lambda: sum_of(DataLoader(Samples(40, 0), batch_size=8, collate_fn=no_batch)),
    lambda: sum_of(DataLoader(Samples(40, 0), batch_size=8, collate_fn=no_batch, num_workers=1)),
    lambda: Layer.apply(torch.ones(1, requires_grad=True)).backward(),
    reentrant,
    lambda: torch.autograd.grad(torch.ones(1), torch.ones(1)),
    lambda: optimizer.step(broken_closure),
    lambda: optimizer.zero_grad(nothing=1),
    lambda: scaler.step(None),
    lambda: torch.nn.utils.clip_grad_norm_([torch.ones(1)], "huge", error_if_nonfinite=True),
    lambda: torch.save(model, "no/such/folder"),
    lambda: torch.save(lambda: 0, "lambda.pt"),
    lambda: torch.distributed.all_reduce(torch.ones(1)),
    lambda: torch.compile(model, backend="no such backend", mode="and a mode"),
    lambda: queue.Queue().get(timeout=0.001),
    interrupted,
    profile_twice,
    not_there,
]

for case in CASES:
    try:
        case()
    except BaseException:
        traceback.print_exc()
    else:
        os._exit(0)
sum_of(DataLoader(Broken(40, 0), batch_size=8))
