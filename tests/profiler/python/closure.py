"""An optimizer that runs the forward and the backward pass itself, several times a step."""
import time

import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader

model = make_model()
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
watch = Stopwatch()
for x, y in watch.watched(DataLoader(Samples(160, 0.0005), batch_size=8)):
    inside = 0.0

    def closure():
        global inside, loss
        optimizer.zero_grad()
        begin = time.perf_counter()
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with watch.of("backward"):
            loss.backward()
        inside += time.perf_counter() - begin
        return loss

    begin = time.perf_counter()
    optimizer.step(closure)
    watch.add("optimizer", time.perf_counter() - begin - inside)
    watch.step_ends()
print("loss %.6f" % loss.item())
watch.save()
