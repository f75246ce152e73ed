"""Two models that train in turn, then a look at other data without gradients."""
import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader

first, second = make_model(), make_model()
optimizers = [torch.optim.SGD(model.parameters(), lr=0.01) for model in (first, second)]
watch = Stopwatch()
for x, y in watch.watched(DataLoader(Samples(240), batch_size=8)):
    for i, (model, optimizer) in enumerate(zip((first, second), optimizers)):
        optimizer.zero_grad()
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with watch.of("backward"):
            loss.backward()
        with watch.of("optimizer"):
            optimizer.step()
        if i == 0:
            watch.step_ends()
print("loss %.6f" % loss.item())
watch.save()
with torch.no_grad():
    for x, y in DataLoader(Samples(64), batch_size=8):
        first(x)
