"""Traces as torch.profiler writes them, for tests of the program. Times are microseconds."""


def span(category, name, begin, length, **args):
    """On the thread that steps."""
    event = {"ph": "X", "cat": category, "name": name, "pid": 100, "tid": 1, "ts": begin, "dur": length}
    return {**event, "args": args} if args else event


def launched(name, call, begin, length, correlation):
    """A launch at `call`, and the kernel that it starts."""
    kernel = span("kernel", name, begin, length, device=0, stream=7, correlation=correlation)
    return [span("cuda_runtime", "cudaLaunchKernel", call, 5, correlation=correlation), {**kernel, "pid": 0, "tid": 7}]


def trace(events, rank=None, world_size=2, **members):
    """`rank` at the end, where only a reader of the whole file meets it."""
    ranks = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": world_size}}
    return {"schemaVersion": 1, **members, "traceEvents": events, **ranks}


def training(wait_us=5, **members):
    """Twenty steps of 1 ms that wait for data, launch a kernel, and leave no other time."""
    events = []
    for i in range(20):
        begin = 1000 * i
        work = begin + wait_us
        events += [span("user_annotation", f"ProfilerStep#{i}", begin, 1000),
                   span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", begin,
                        wait_us),
                   *launched("gemm", work + 1, work + 8, 992 - wait_us, i + 1)]
    return trace(events, **members)


def named(name="k", **members):
    """Five steps; `name` is the device's, the kernel's and in part an annotation's."""
    events = []
    for i in range(5):
        begin = 1000 * i
        events += [span("user_annotation", f"ProfilerStep#{i}", begin, 900),
                   span("user_annotation", name[-15:], begin + 10, 800),
                   *launched(name, begin + 1, begin + 9, 300, i + 1)]
    return trace(events, deviceProperties=[{"id": 0, "name": name}], **members)


def steps(rank=None):
    """Five steps and nothing else."""
    return trace([span("user_annotation", f"ProfilerStep#{i}", 1000 * i, 900) for i in range(5)], rank, world_size=8)


def one_step(rank, begin=1_751_410_836_000_000):
    """A step with a launch and its kernel; the same ids in each rank."""
    step = span("user_annotation", "ProfilerStep#1", begin, 90)
    return trace([step, *launched("k", begin + 1, begin + 9, 40, 7)], rank)
