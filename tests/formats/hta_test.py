#!/usr/bin/env python3
"""HTA loads what we export, and its temporal breakdown equals ours over its own window, which goes
from the first to the last row of GPU work.

Needs HolisticTraceAnalysis: scripts/install_hta.sh makes .venv-hta. The interpreter is
TRAINPROF_HTA_PYTHON, else .venv-hta/bin/python, else this one; where none has the package the test is
skipped, but a .venv-hta that does not work is a failure. Environment, set by CTest: TRAINPROF,
GPU_BREAKDOWN (programs), TRAINPROF_CORPUS.
"""
import decimal
import gzip
import json
import math
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIP = 77
TIMEOUT_S = 500

# HTA and we agree on what the rows that both count mean. What HTA counts otherwise is taken out of a
# trace before both see it, and nowhere else:
ROUNDS = "nanoseconds: HTA rounds times down to microseconds (its own words)"
SYNCS = "cuda_sync rows: HTA counts them as work (HTA#149)"
ORPHANS = "GPU rows whose launch is not in the trace: HTA leaves them out"
CORPUS = {**{f"dlrm_8ranks/rank{rank}.pt.trace.json.gz": () for rank in range(8)},
          "kineto_resnet50/workers0.pt.trace.json.gz": (),
          "kineto_resnet50/workers4.pt.trace.json.gz": (),
          "hta/ddp_item_a100.json.gz": (),
          "hta/ddp_d2h_graphs_a100.json.gz": (ORPHANS,),
          "hta/alexnet_cold_a100.json.gz": (SYNCS,),
          "hta/event_sync_multi_stream.json.gz": (SYNCS,),
          "hta/amd_mi250.json.gz": (ROUNDS,),
          "tracelens/h100_qwen_chat.json.gz": (ROUNDS,)}

# Runs with HTA's interpreter: prints one line of JSON a trace.
HTA = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
for path in sys.argv[1:]:
    analysis = TraceAnalysis(trace_files={0: path}, trace_dir="", include_last_profiler_step=True)
    row = analysis.get_temporal_breakdown(visualize=False).iloc[0]
    print(json.dumps({key: int(row[key + "_time(us)"]) for key in ("idle", "compute", "non_compute", "kernel")}))
"""


def hta_python():
    """An interpreter that has HTA, or None."""
    venv = os.path.join(SOURCE, ".venv-hta/bin/python")
    for python in (os.environ.get("TRAINPROF_HTA_PYTHON"), venv, sys.executable):
        if not python or not shutil.which(python):
            continue
        probe = [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('hta') is None)"]
        # Whoever made an environment for HTA wants to hear that it does not work.
        if python != sys.executable or subprocess.run(probe, check=False).returncode == 0:
            return python
    return None


def as_hta_counts(path, differences, out):
    """The trace without what HTA counts otherwise."""
    with gzip.open(path) as file:
        document = json.loads(file.read(), parse_float=decimal.Decimal)
    events = document["traceEvents"]
    launched = {event["args"].get("correlation") for event in events
                if event.get("cat") in ("cuda_runtime", "cuda_driver") and "args" in event}
    kept = []
    for event in events:
        is_work = event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
        if SYNCS in differences and event.get("cat") == "cuda_sync":
            continue
        if ORPHANS in differences and is_work and event["args"].get("correlation") not in launched:
            continue
        if ROUNDS in differences and event.get("ph") == "X":
            begin = math.floor(decimal.Decimal(event["ts"]))
            end = math.floor(decimal.Decimal(event["ts"]) + decimal.Decimal(event["dur"]))
            event["ts"], event["dur"] = begin, end - begin
        kept.append(event)
    document["traceEvents"] = kept
    with gzip.open(out, "wt") as file:
        json.dump(document, file, default=float)


def generated_trace(path, rank=0):
    """Two steps of launches with kernels on two streams that overlap, collectives and copies."""
    numbers = random.Random(1 + rank)
    events = [{"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}}]
    correlation = 100_000  # HTA packs small ones into 8 bits, which overflow
    for step in range(2):
        start = 1000 + step * 5000
        events.append({"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 100, "tid": 100,
                       "ts": start, "dur": 4900, "args": {"External id": step}})
        for i in range(40):
            correlation += 1
            launch, stream = start + 20 + i * 100, (7, 20)[i % 2]
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 100,
                           "ts": launch, "dur": 9, "args": {"correlation": correlation, "cbid": 211}})
            name, category = (("ncclKernel_AllReduce_RING_LL_Sum_float", "kernel"), ("gemm_kernel", "kernel"),
                              ("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy"))[i % 3]
            events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": stream,
                           "ts": launch + 20 + numbers.randrange(9), "dur": numbers.randrange(1, 300),
                           "args": {"device": 0, "stream": stream, "correlation": correlation, "bytes": 64}})
    with open(path, "w", encoding="ascii") as file:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2}, "traceEvents": events}, file)


class Hta(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def export(self, path, name, *flags):
        subprocess.run([os.environ["TRAINPROF"], "export", path, "-o", self.path(name), *flags], check=True,
                       capture_output=True, timeout=TIMEOUT_S)
        return self.path(name)

    def hta_breakdowns(self, paths):
        """HTA's, nanoseconds."""
        done = subprocess.run([hta_python(), "-c", HTA, *paths], capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"idle"')]
        self.assertEqual(len(lines), len(paths), done.stdout)
        return [{key: us * 1000 for key, us in line.items()} for line in lines]

    def expect_equal_breakdowns(self, exported):
        """`exported`: the path by what it is of."""
        for name, theirs in zip(exported, self.hta_breakdowns(exported.values())):
            ours = json.loads(subprocess.check_output([os.environ["GPU_BREAKDOWN"], exported[name]],
                                                      timeout=TIMEOUT_S))
            self.assertEqual({"idle": ours["idle"], "compute": ours["compute"], "non_compute": ours["non_compute"],
                              "kernel": ours["window"]}, theirs, name)
            self.assertGreater(theirs["compute"], 0, name)

    def test_breakdown_of_our_exports_equals_ours(self):
        generated_trace(self.path("generated.json"))
        exported = {"generated": self.export(self.path("generated.json"), "generated.json.gz")}
        corpus = os.environ.get("TRAINPROF_CORPUS", "")
        for number, (name, differences) in enumerate(CORPUS.items()):
            source = os.path.join(corpus, name)
            if not os.path.exists(source):
                continue
            if differences:
                as_hta_counts(source, differences, self.path(f"changed{number}.json.gz"))
                source = self.path(f"changed{number}.json.gz")
            exported[name] = self.export(source, f"rank{number}.json.gz")
        self.expect_equal_breakdowns(exported)

    def test_a_file_of_several_ranks_loads_as_one(self):
        """HTA wants a file a rank: it takes the rows of all ranks for those of one, as our reader of one file does."""
        os.mkdir(self.path("ranks"))
        for rank in range(2):
            generated_trace(self.path(f"ranks/{rank}.json"), rank)
        merged = self.export(self.path("ranks"), "merged.json.gz", "--merge")
        self.expect_equal_breakdowns({"merged": merged})


if __name__ == "__main__":
    if hta_python() is None:
        print("Skipped: HolisticTraceAnalysis is not installed (scripts/install_hta.sh)")
        sys.exit(SKIP)
    unittest.main()
