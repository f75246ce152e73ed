"""A step of three batches, and gradients that are clipped."""
import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader

model = make_model()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
watch = Stopwatch()
for i, (x, y) in enumerate(watch.watched(DataLoader(Samples(360), batch_size=4))):
    with watch.of("forward"):
        loss = torch.nn.functional.cross_entropy(model(x), y) / 3
    with watch.of("backward"):
        loss.backward()
    if i % 3 == 2:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        with watch.of("optimizer"):
            optimizer.step()
        watch.step_ends()
        optimizer.zero_grad()
print("loss %.6f" % loss.item())
watch.save()
