"""The usual loop. Arguments: workers, and how they are started."""
import importlib.util
import sys

importlib.util.find_spec("torch")  # as libraries do that can go without it
import torch
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader


def main(workers, start_method):
    model = make_model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(Samples(240), batch_size=8, num_workers=workers, multiprocessing_context=start_method or None)
    watch = Stopwatch()
    for x, y in watch.watched(loader):
        optimizer.zero_grad()
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with watch.of("backward"):
            loss.backward()
        with watch.of("optimizer"):
            optimizer.step()
        watch.step_ends()
        print("loss %.6f" % loss.item())
    watch.save()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "")
