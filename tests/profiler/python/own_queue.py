"""Batches that a thread of the script's own prepares."""
import queue
import threading
import time

import torch
from truth import WIDTH, Stopwatch, make_model

batches = queue.Queue(maxsize=2)


def produce():
    for i in range(40):
        time.sleep(0.01)
        batches.put((torch.full((8, WIDTH), float(i)).sin(), torch.arange(8)))
    batches.put(None)


threading.Thread(target=produce, daemon=True).start()
model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = Stopwatch()
while True:
    with watch.of("input_wait"):
        batch = batches.get()  # here it waits
    if batch is None:
        break
    with watch.of("forward"):
        loss = torch.nn.functional.cross_entropy(model(batch[0]), batch[1])
    optimizer.zero_grad()
    with watch.of("backward"):
        loss.backward()
    with watch.of("optimizer"):
        optimizer.step()
    watch.step_ends()
print("loss %.6f" % loss.item())
watch.save()
