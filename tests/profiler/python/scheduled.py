"""The usual loop under torch.profiler with a schedule. Prints how often its profiles hold each operator."""
import torch
from torch.profiler import ProfilerActivity, profile, schedule
from truth import Samples, Stopwatch, make_model
from torch.utils.data import DataLoader


def tell(profiler):
    counts = {event.key: event.count for event in profiler.key_averages()}
    print(sorted((name, count) for name, count in counts.items() if not name.startswith("[")))


model = make_model()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
watch = Stopwatch()
with profile(activities=[ProfilerActivity.CPU], schedule=schedule(wait=10, warmup=1, active=4, repeat=2),
             on_trace_ready=tell) as profiler:
    for x, y in watch.watched(DataLoader(Samples(320), batch_size=8)):
        optimizer.zero_grad()
        with watch.of("forward"):
            loss = torch.nn.functional.cross_entropy(model(x), y)
        with watch.of("backward"):
            loss.backward()
        with watch.of("optimizer"):
            optimizer.step()
        watch.step_ends()
        profiler.step()
watch.save()
