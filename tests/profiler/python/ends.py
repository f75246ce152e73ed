"""Trains a little and ends as it is told to."""
import os
import signal
import sys

import torch
from truth import Samples, make_model
from torch.utils.data import DataLoader


class Broken(Samples):
    def __getitem__(self, i):
        if i == 100 and sys.argv[1] == "dataset":
            raise ValueError("sample 100 is broken")
        return super().__getitem__(i)


model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(DataLoader(Broken(160, 0), batch_size=8)):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, flush=True)
    if step == 15:
        if sys.argv[1] == "exit":
            sys.exit(7)
        if sys.argv[1] == "os._exit":
            os._exit(9)
        if sys.argv[1] == "interrupt":
            signal.raise_signal(signal.SIGINT)
        if sys.argv[1] == "closure":
            optimizer.step(lambda: 1 / 0)
