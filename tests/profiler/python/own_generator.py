"""Batches of a generator of the script's own, a model saved at each step, and gradients that are cleared before the
next batch is asked for."""
import io
import time

import torch
from truth import WIDTH, Stopwatch, make_model


def batches():
    for i in range(40):
        time.sleep(0.02)  # here the batch is made
        yield torch.full((8, WIDTH), float(i)).sin(), torch.arange(8)


model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = Stopwatch()
for x, y in watch.watched(batches()):
    with watch.of("forward"):
        loss = torch.nn.functional.cross_entropy(model(x), y)
    with watch.of("backward"):
        loss.backward()
    with watch.of("optimizer"):
        optimizer.step()
    optimizer.zero_grad()
    torch.save((model.state_dict(), torch.zeros(1 << 20)), io.BytesIO())
    watch.step_ends()
print("loss %.6f" % loss.item())
watch.save()
