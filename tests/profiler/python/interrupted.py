"""A signal that comes while garbage is collected is heard when that is done."""
import gc
import signal

import torch

signal.signal(signal.SIGALRM, signal.default_int_handler)
gc.disable()
lists = [[] for _ in range(3_000_000)]
for one in lists:
    one.append(lists)
heard = 0
for _ in range(5):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        gc.collect()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        heard += 1
print("heard", heard, torch.ones(1).sum().item())
