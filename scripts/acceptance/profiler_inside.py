#!/usr/bin/env python3
"""200 steps of a matrix product, ten of them under torch.profiler. Prints what that saw."""

import time

import torch
from torch.profiler import ProfilerActivity, profile

STEPS, FIRST, LAST = 200, 50, 60


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    matrix = torch.randn(512, 512, device=device)
    profiler = None
    begin = time.monotonic()
    for step in range(STEPS):
        if step == FIRST:
            profiler = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])
            profiler.start()
        matrix = torch.tanh(matrix @ matrix)
        float(matrix[0, 0])
        if step == LAST:
            profiler.stop()
    mean_ms = 1e3 * (time.monotonic() - begin) / STEPS
    on_device = sum(event.device_type == torch.autograd.DeviceType.CUDA for event in profiler.events())
    print(f"mean of {STEPS} steps after warm-up: {mean_ms:.3f} ms/step")
    print(f"torch.profiler saw {on_device} kernels and copies")


if __name__ == "__main__":
    main()
