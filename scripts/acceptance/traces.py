"""What devices did, read from Chrome JSON: of our own export and of torch.profiler alike."""

import collections
import gzip
import json
import re
import statistics

KERNEL, COPY, MEMSET = "kernel", "gpu_memcpy", "gpu_memset"


class DeviceWork:
    """`kernels`: durations in us by (name, grid, block); `copies`: bytes by name, a list each."""

    def __init__(self):
        self.kernels = collections.defaultdict(list)
        self.copies = collections.defaultdict(list)
        self.memsets = 0

    def kernel_counts(self):
        return collections.Counter({key: len(times) for key, times in self.kernels.items()})

    def medians(self):
        return {key: statistics.median(times) for key, times in self.kernels.items()}

    def copy_counts(self):
        return {name: (len(sizes), sum(sizes)) for name, sizes in self.copies.items()}


def _normal(name):
    """Demanglers differ in blanks."""
    return re.sub(r"\s+", "", name)


# Of matrix products and convolutions.
CHOSEN = re.compile(r"gemm|gemv|cutlass|xmma|cudnn|conv|wgrad|dgrad|splitK|nchwToNhwc|nhwcToNchw", re.IGNORECASE)


def without_chosen(counts):
    """Counts by (name, grid, block) without kernels that a library chooses, and how many those are."""
    others = collections.Counter({key: count for key, count in counts.items() if not CHOSEN.search(key[0])})
    return others, sum(counts.values()) - sum(others.values())


def _triple(value):
    return tuple(value) if isinstance(value, list) else value


def device_work(path):
    opened = gzip.open if str(path).endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", errors="replace") as file:
        document = json.load(file)
    events = document["traceEvents"] if isinstance(document, dict) else document
    work = DeviceWork()
    for event in events:
        if event.get("ph") != "X":
            continue
        args, category = event.get("args", {}), event.get("cat")
        if category == KERNEL:
            key = (_normal(event["name"]), _triple(args.get("grid")), _triple(args.get("block")))
            work.kernels[key].append(float(event["dur"]))
        elif category == COPY:
            work.copies[_normal(event["name"])].append(int(args.get("bytes", 0)))
        elif category == MEMSET:
            work.memsets += 1
    return work
