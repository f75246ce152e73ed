"""Trains a model of named parts; with a file's name torch.profiler sees some of its steps, and how often each operator
ran in one goes there."""
import json
import sys

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
STEPS, PROFILED = 30, 10


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(32, 32)
        self.activation = torch.nn.ReLU()

    def forward(self, x):
        return self.activation(self.linear(x))


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(3))
        self.head = torch.nn.Linear(32, 10)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


model = Model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
samples = [(torch.randn(32), i % 10) for i in range(16 * STEPS)]
profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) if len(sys.argv) > 1 else None
for step, (x, y) in enumerate(torch.utils.data.DataLoader(samples, batch_size=16)):
    if profile and step == 5:
        profile.start()
    if profile and step == 5 + PROFILED:
        profile.stop()
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
print("loss %.6f" % loss.item())
if profile:
    counts = {event.key: event.count / PROFILED for event in profile.key_averages()}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(counts, file)
