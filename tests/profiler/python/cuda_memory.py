"""A loop on the CPU beside a CUDA allocator that is not there: torch's own functions, replaced, give what a build for
CUDA gives (shapes of torch 2.13), as a loop has it that keeps 3 MiB a step at line 31 of model.py."""
import sys

import torch

MIB = 1 << 20
steps = 0
recording = "--recorded" in sys.argv  # by the script itself
asked = []


def current(value, peak):
    return {"current": value, "peak": peak, "allocated": 0, "freed": 0}


def statistics(device):
    if device != 1:
        return {name: {"all": current(0, 0)} for name in ("allocated_bytes", "reserved_bytes")}
    held = (100 + 3 * steps) * MIB
    return {"allocated_bytes": {"all": current(held, held + 50 * MIB), "large_pool": current(held, held)},
            "reserved_bytes": {"all": current(2 * held, 2 * held)}, "num_ooms": 0}


def block(size, line, file="/home/me/model.py", state="active_allocated"):
    frames = [{"filename": "/x/site-packages/torch/nn/functional.py", "line": 7, "name": "relu"},
              {"filename": file, "line": line, "name": "forward"},
              {"filename": "/home/me/train.py", "line": 5, "name": "<module>"}]
    return {"size": size, "requested_size": size, "address": 0, "state": state, "frames": frames if line else []}


def snapshot():
    blocks = [block(100 * MIB, 0), block(8 * MIB, 99), block(5 * MIB * steps, 12, state="inactive")]
    blocks += [block(3 * MIB, 31) for _ in range(steps)]
    return {"segments": [{"device": 1, "blocks": blocks}], "device_traces": []}


def record(*arguments, **keywords):
    asked.append((arguments, keywords))


torch.cuda.is_initialized = lambda: True
torch.cuda.device_count = lambda: 2
torch._C._cuda_memoryStats = statistics
torch._C._cuda_isHistoryEnabled = lambda: recording
torch._C._cuda_record_memory_history = None
torch.cuda.memory._record_memory_history = record
torch.cuda.memory._snapshot = snapshot

weight = torch.zeros(1, requires_grad=True)
optimizer = torch.optim.SGD([weight], lr=0.1)
for steps in range(60):
    weight.sum().backward()
    optimizer.step()
print(asked)
