#!/usr/bin/env python3
"""Runs a Python script under torch.profiler and writes its trace.

usage: with_torch_profiler.py TRACE.json[.gz] SCRIPT [ARGUMENTS...]
"""

import runpy
import sys

from torch.profiler import ProfilerActivity, profile


def main(trace, script, *arguments):
    sys.argv = [script, *arguments]
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        runpy.run_path(script, run_name="__main__")
    profiler.export_chrome_trace(trace)


if __name__ == "__main__":
    main(*sys.argv[1:])
