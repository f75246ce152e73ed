"""A loop that keeps something at each step, by its first argument: "tensors", "losses", "total", "summed", "python",
"full" (a buffer that is full), "nothing". Ends with what its own figures say of a step's growth, in bytes."""
import collections
import json
import os
import sys

import torch

KIND, STEPS = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 60
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.Tanh(), torch.nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
kept = []
window = collections.deque(maxlen=4)
total = torch.zeros(())
summed = 0


def resident():
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def validate(x):
    return model(x).pow(2).mean()  # what is kept of the losses


held = []
for step in range(STEPS):
    x = torch.randn(64, 64)
    optimizer.zero_grad()
    loss = model(x).pow(2).mean()
    loss.backward()
    optimizer.step()
    if KIND == "tensors":
        kept.append(torch.ones(512, 1024))  # 2 MiB
    elif KIND == "losses":
        kept.append(validate(torch.randn(512, 64)))
    elif KIND == "total":
        total += validate(torch.randn(512, 64))  # in place
    elif KIND == "summed":
        summed = summed + validate(torch.randn(512, 64))  # anew
    elif KIND == "python":
        kept.append([bytes(1000) for _ in range(1000)])
    elif KIND == "full":
        window.append(torch.ones(512, 1024))
    held.append(resident())
print(json.dumps([float(each) for each in (loss.detach(), total.detach(), torch.as_tensor(summed).detach())]))
half = STEPS // 2
with open("truth.json", "w", encoding="utf-8") as file:
    json.dump((held[-1] - held[half]) / (STEPS - 1 - half), file)
