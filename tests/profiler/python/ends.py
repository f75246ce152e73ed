"""Trains a little and ends as it is told to."""
import signal
import sys

import torch
from truth import Samples, make_model
from torch.utils.data import DataLoader

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, (x, y) in enumerate(DataLoader(Samples(160, 0), batch_size=8)):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, flush=True)
    if step == 15:
        if sys.argv[1] == "exit":
            sys.exit(7)
        if sys.argv[1] == "interrupt":
            signal.raise_signal(signal.SIGINT)
