#!/usr/bin/env python3
"""HTA loads what we export, and its temporal breakdown equals ours over its own window, which goes
from the first to the last row of GPU work.

Needs HolisticTraceAnalysis, in an environment of its own:
    python3 -m venv .venv-hta && .venv-hta/bin/pip install HolisticTraceAnalysis
The interpreter is TRAINPROF_HTA_PYTHON, else .venv-hta/bin/python, else this one; without the package
the test is skipped. Environment, set by CTest: TRAINPROF, GPU_BREAKDOWN (programs), TRAINPROF_CORPUS.
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
SKIP = 77
TIMEOUT_S = 250
# In whole microseconds and without cuda_sync rows: HTA rounds nanoseconds down (its own words) and
# counts those rows as work (HTA#149).
CORPUS = ("hta/ddp_item_a100.json.gz", "dlrm_8ranks/rank7.pt.trace.json.gz",
          "kineto_resnet50/workers0.pt.trace.json.gz")

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
    for python in (os.environ.get("TRAINPROF_HTA_PYTHON"), os.path.join(SOURCE, ".venv-hta/bin/python"),
                   sys.executable):
        if not python or not shutil.which(python):
            continue
        probe = [python, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('hta') is None)"]
        if subprocess.run(probe, check=False).returncode == 0:
            return python
    return None


def generated_trace(path):
    """Two steps of launches with kernels on two streams that overlap, collectives and copies."""
    numbers = random.Random(1)
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
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": 0, "world_size": 1}, "traceEvents": events}, file)


class Hta(unittest.TestCase):
    def test_breakdown_of_our_exports_equals_ours(self):
        folder = tempfile.mkdtemp(prefix="trainprof-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        inputs = [os.path.join(folder, "generated.json")]
        generated_trace(inputs[0])
        corpus = os.environ.get("TRAINPROF_CORPUS", "")
        inputs += [os.path.join(corpus, name) for name in CORPUS if os.path.exists(os.path.join(corpus, name))]
        exported = []
        for number, path in enumerate(inputs):
            exported.append(os.path.join(folder, f"rank{number}.json.gz"))
            subprocess.run([os.environ["TRAINPROF"], "export", path, "-o", exported[-1]], check=True,
                           capture_output=True, timeout=TIMEOUT_S)
        done = subprocess.run([hta_python(), "-c", HTA, *exported], capture_output=True, text=True,
                              timeout=TIMEOUT_S, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        theirs = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"idle"')]
        self.assertEqual(len(theirs), len(inputs), done.stdout)
        for path, trace, hta in zip(inputs, exported, theirs):
            ours = json.loads(subprocess.check_output([os.environ["GPU_BREAKDOWN"], trace], timeout=TIMEOUT_S))
            self.assertEqual({"idle": ours["idle"], "compute": ours["compute"], "non_compute": ours["non_compute"],
                              "kernel": ours["window"]}, {key: us * 1000 for key, us in hta.items()}, path)
            self.assertGreater(hta["compute"], 0)


if __name__ == "__main__":
    if hta_python() is None:
        print("Skipped: HolisticTraceAnalysis is not installed (python3 -m venv .venv-hta && "
              ".venv-hta/bin/pip install HolisticTraceAnalysis)")
        sys.exit(SKIP)
    unittest.main()
