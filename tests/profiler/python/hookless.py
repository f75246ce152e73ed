"""The usual loop, slow enough for samples of its stacks. Arguments: a folder that torch is to be found in, or ""."""
import sys

sys.path[1:1] = [it for it in sys.argv[1:] if it]
import torch
from torch.utils.data import DataLoader
from truth import Samples, Stopwatch

torch.set_num_threads(1)


def main():
    layers = [torch.nn.Linear(512, 1024), torch.nn.Tanh(), torch.nn.Linear(1024, 1024), torch.nn.Linear(1024, 10)]
    model = torch.nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    watch = Stopwatch()
    for x, y in watch.watched(DataLoader(Samples(1600, 0.0002), batch_size=32)):
        x = x.repeat(16, 1)
        optimizer.zero_grad()
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y.repeat(16))
        with watch.of("backward"):
            loss.backward()
        with watch.of("optimizer"):
            optimizer.step()
        watch.step_ends()
    watch.save()


main()
