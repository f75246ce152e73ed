"""Leaves cycles, and has them collected at each step; then threads do while others train. Prints what its own clock says of the
collections of the second generation, in ms."""
import gc
import threading
import time

import torch
from truth import Samples, make_model
from torch.utils.data import DataLoader


def leave_cycles(count):
    for _ in range(count):
        cycle = []
        cycle.append(cycle)


model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
spent = 0.0
for x, y in DataLoader(Samples(160, 0), batch_size=8):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    leave_cycles(500)
    begin = time.perf_counter()
    gc.collect()
    spent += time.perf_counter() - begin
    optimizer.step()
threads = [threading.Thread(target=leave_cycles, args=(50_000,)) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("%.3f" % (spent * 1e3))
