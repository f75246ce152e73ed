#!/usr/bin/env python3
"""Counts the events of Chrome traces by category, independently of trainprof's own reader.

usage: count_events.py FILE...    one line a file: name, then category=count pairs
"""
import collections
import gzip
import json
import os
import re
import sys

GROUPS = {
    "kernels": ("kernel", "Kernel"),
    "copies": ("gpu_memcpy", "Memcpy"),
    "memsets": ("gpu_memset", "Memset"),
    "calls": ("cuda_runtime", "cuda_driver", "Runtime"),
    "ops": ("cpu_op", "Operator"),
    "annotations": ("user_annotation",),
    "python": ("python_function",),
    "syncs": ("cuda_sync", "cuda_event"),
}


def load(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rb") as file:
        text = file.read().decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except json.JSONDecodeError:
        text = re.sub(r'\\(?!["\\/bfnrtu])', r"\\\\", text)
        return json.loads(re.sub(r":\s*N/A", ": null", text), strict=False)


def count(path):
    document = load(path)
    events = document if isinstance(document, list) else document.get("traceEvents", [])
    counts = collections.Counter()
    for event in events:
        phase = event.get("ph")
        if phase == "X":
            counts["complete"] += 1
            for group, words in GROUPS.items():
                if event.get("cat") in words:
                    counts[group] += 1
        elif phase in ("s", "t", "f"):
            counts["flows"] += 1
        elif phase == "i":
            counts["instants"] += 1
    total = sum(round(e["dur"] * 1000) for e in events
                if e.get("ph") == "X" and e.get("cat") in GROUPS["kernels"])
    counts["kernel_ns"] = total
    return counts


def main():
    names = ["complete", *GROUPS, "flows", "instants", "kernel_ns"]
    for path in sys.argv[1:]:
        counts = count(path)
        folder, name = os.path.split(path)
        shown = os.path.join(os.path.basename(folder), name)
        print(shown, *(f"{key}={counts[key]}" for key in names))


if __name__ == "__main__":
    main()
