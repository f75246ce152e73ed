"""torch.compile under bf16 autocast: kernels of Triton's.

usage: torch_compile.py STEPS
"""

import sys

import torch
from torch import nn

WIDTH, BATCH = 1024, 512


def main(steps):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.LayerNorm(WIDTH))]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), fused=device == "cuda")
    compiled = torch.compile(model)
    for _ in range(int(steps)):
        with torch.autocast(device, torch.bfloat16):
            out = compiled(torch.randn(BATCH, WIDTH, device=device))
        out.float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main(*sys.argv[1:])
