"""DDP over gloo, all ranks on one GPU; to be started by torchrun.

usage: ddp.py STEPS
"""

import sys

import torch
import torch.distributed as dist
from torch import nn

WIDTH, BATCH = 1024, 256


def main(steps):
    dist.init_process_group("gloo")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.ReLU(), nn.Linear(2 * WIDTH, WIDTH)).to(device)
    model = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(int(steps)):
        inputs = torch.randn(BATCH, WIDTH, device=device)
        (model(inputs) - inputs).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
