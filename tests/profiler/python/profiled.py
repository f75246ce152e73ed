"""A script that has torch's own profiler, a compiled function and copies of what is watched."""
import copy
import pickle

import torch
from truth import Samples, make_model
from torch._dynamo.utils import counters
from torch.utils.data import DataLoader

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


@torch.compile(backend="eager")
def loss_of(x, y):
    return torch.nn.functional.cross_entropy(model(x), y)


@torch.compile(backend="eager")
def step():
    optimizer.step()


with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
    for x, y in DataLoader(Samples(160, 0), batch_size=8):
        optimizer.zero_grad()
        loss_of(x, y).backward()
        step()
names = {event.key for event in profile.key_averages()}
print(sorted(name for name in names if "#" in name))
print({kind: dict(counters[kind]) for kind in ("graph_break", "unimplemented")}, counters["stats"]["unique_graphs"])
copies = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer)), pickle.loads(pickle.dumps(model))]
print([type(it).__name__ for it in copies], torch.utils.data.DataLoader.__iter__.__qualname__)
print("%.6f" % loss_of(x, y).item())
