#!/usr/bin/env python3
"""What CUPTI costs a step of torch's on the host, by what it is asked for: forward pass, backward pass and optimizer. It
tells which of our kinds is dear. No trainprof takes part.

A machine's speed may change by half from one second to the next (docs/gpu_results.md): each way takes turns with nothing,
some steps each, in an order that is drawn anew each round.

usage: cupti_costs.py LIBCUPTI [ROUNDS]     prints a line a configuration: name, then by how many us a step each phase is
                                            longer, the median of the rounds and their quartiles;
                                            at least 2, 8 unless told
"""

import ctypes
import pathlib
import random
import statistics
import sys
import time

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "instrumented_trainer"))
import train  # noqa: E402

KERNEL, MEMCPY, MEMCPY2, MEMSET, DRIVER, RUNTIME, OVERHEAD = 10, 1, 22, 2, 4, 5, 17
SYNCHRONIZATION, CUDA_EVENT, MEMORY2 = 38, 36, 49
# cupti_runtime_cbid.h: cudaLaunchKernel, ...ExC, cudaMemsetAsync, cudaMemcpyAsync; cupti_driver_cbid.h: cuLaunchKernel, ...Ex
RUNTIME_CALLS, DRIVER_CALLS = (211, 430, 51, 41), (307, 652)
DRIVER_DOMAIN, RUNTIME_DOMAIN = 1, 2
BUFFER_BYTES = 3_200_000
BATCH, IMAGE, WIDTH = 8, 32, 8  # small: the host is the slower side
BURST = 8  # steps of one way before the next
SETTLE = 2  # steps that follow a change, and are not timed

Request = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t),
                           ctypes.POINTER(ctypes.c_size_t))
Complete = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class Cupti:
    """One subscriber, which is called back by nothing but a function of the C library's that returns at once."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.libc = ctypes.CDLL(None)
        self.libc.malloc.restype = ctypes.c_void_p
        self.libc.malloc.argtypes = [ctypes.c_size_t]
        self.libc.free.argtypes = [ctypes.c_void_p]
        self.request, self.complete = Request(self._request), Complete(self._complete)
        self.subscriber = ctypes.c_void_p()
        self.on, self.refused = [], []

    def subscribe(self):
        nothing = ctypes.cast(self.libc.abs, ctypes.c_void_p)
        self.call("cuptiSubscribe", ctypes.byref(self.subscriber), nothing, None)
        self.call("cuptiActivityRegisterCallbacks", self.request, self.complete)

    def enable(self, kinds=(), calls=False, callbacks=False):
        for kind in kinds:
            self.call("cuptiActivityEnable", kind)
        self.on = list(kinds)
        self.set_calls(calls, callbacks)

    def disable(self):
        for kind in self.on:
            self.call("cuptiActivityDisable", kind)
        self.set_calls(False, False)
        self.call("cuptiActivityFlushAll", 0)

    def set_calls(self, records, callbacks):
        for function, domain, cbids in (("Runtime", RUNTIME_DOMAIN, RUNTIME_CALLS), ("Driver", DRIVER_DOMAIN, DRIVER_CALLS)):
            for cbid in cbids:
                self.call(f"cuptiActivityEnable{function}Api", cbid, int(records))
                self.call("cuptiEnableCallback", int(callbacks), self.subscriber, domain, cbid)

    def leave(self):
        self.call("cuptiUnsubscribe", self.subscriber)
        self.call("cuptiFinalize")

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            self.refused.append(f"{name} gives {result}")

    def _request(self, buffer, size, records):
        buffer[0], size[0], records[0] = self.libc.malloc(BUFFER_BYTES), BUFFER_BYTES, 0

    def _complete(self, _context, _stream, buffer, _size, _valid):
        self.libc.free(buffer)


class Load:
    """A step of train.py's network, in three phases that only launch."""

    def __init__(self, device):
        self.device = device
        self.model = train.Resnet(WIDTH, train.CLASSES).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.images = torch.randn(BATCH, 3, IMAGE, IMAGE, device=device)
        self.labels = torch.zeros(BATCH, dtype=torch.long, device=device)

    def step(self):
        times = [time.perf_counter()]
        loss = torch.nn.functional.cross_entropy(self.model(self.images), self.labels)
        times.append(time.perf_counter())
        loss.backward()
        times.append(time.perf_counter())
        self.optimizer.step()
        self.optimizer.zero_grad()
        times.append(time.perf_counter())
        if self.device == "cuda":
            torch.cuda.synchronize()
        return [1e6 * (end - begin) for begin, end in zip(times, times[1:])]

    def phases(self):
        for _ in range(SETTLE):
            self.step()
        return [statistics.median(phase) for phase in zip(*(self.step() for _ in range(BURST)))]


DEVICE_KINDS = (KERNEL, MEMCPY, MEMCPY2, MEMSET)
CONFIGURATIONS = [
    ("kernels", {"kinds": (KERNEL,)}),
    ("copies and memsets", {"kinds": (MEMCPY, MEMCPY2, MEMSET)}),
    ("synchronizations", {"kinds": (SYNCHRONIZATION,)}),
    ("events", {"kinds": (CUDA_EVENT,)}),
    ("memory", {"kinds": (MEMORY2,)}),
    ("overhead", {"kinds": (OVERHEAD,)}),
    ("calls by number", {"calls": True}),
    ("callbacks at these", {"callbacks": True}),
    ("all calls of the runtime", {"kinds": (RUNTIME,)}),
    ("all calls of both", {"kinds": (RUNTIME, DRIVER)}),
    ("kernels, calls by number", {"kinds": (KERNEL,), "calls": True}),
    ("kernels, all calls of both", {"kinds": (KERNEL, RUNTIME, DRIVER)}),
    ("as trainprof, at first", {"kinds": (*DEVICE_KINDS, SYNCHRONIZATION, CUDA_EVENT, MEMORY2, OVERHEAD), "calls": True,
                                "callbacks": True}),
    ("as trainprof, later", {"kinds": (*DEVICE_KINDS, SYNCHRONIZATION, CUDA_EVENT, MEMORY2, OVERHEAD), "calls": True}),
]


def longer(on, before, after):
    """Of each phase, than those without on either side."""
    return [o - (b + a) / 2 for o, b, a in zip(on, before, after)]


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:+.0f} [{low:+.0f}, {high:+.0f}]"


def main(path, rounds="8"):
    load = Load("cuda" if torch.cuda.is_available() else "cpu")
    for _ in range(5):
        load.phases()
    alone = [load.phases() for _ in range(int(rounds))]
    cupti = Cupti(path)
    cupti.subscribe()
    found = {name: [] for name, _ in CONFIGURATIONS}
    order = random.Random(1)
    for _ in range(int(rounds)):
        before = load.phases()
        for name, asked in order.sample(CONFIGURATIONS, len(CONFIGURATIONS)):
            cupti.enable(**asked)
            on = load.phases()
            cupti.disable()
            after = load.phases()
            found[name].append(longer(on, before, after))
            before = after
    subscribed = [load.phases() for _ in range(int(rounds))]
    cupti.leave()
    left = [load.phases() for _ in range(int(rounds))]
    for name, bursts in (("before CUPTI", alone), ("subscribed, all off", subscribed), ("after CUPTI", left)):
        print(f"{name}: " + ", ".join(f"{statistics.median(phase):.0f}" for phase in zip(*bursts)))
    for name, changes in found.items():
        print(f"{name}: " + ", ".join(quartiles(phase) for phase in zip(*changes)), flush=True)
    for text in sorted(set(cupti.refused)):
        print(f"refused: {text}")


if __name__ == "__main__":
    main(*sys.argv[1:])
