"""How long a step takes, as the report says it, against what the program's own events measured on the device.
On the virtual GPU: simulated, but host and device have a clock each, as on a real one.

usage: step_time_test.py TRAINPROF PROGRAM VIRTUAL_GPU_LIBRARIES
"""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

TRAINPROF, PROGRAM, LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:4])
MOST_OFF = 0.02


class StepTime(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "run")

    def record(self, *arguments, full=True, settings=""):
        """The program's own mean step in ms, and what the report says of the rank."""
        environment = dict(os.environ, LD_LIBRARY_PATH=LIBRARIES, VGPU_SETTINGS=settings)
        output = subprocess.run(
            [TRAINPROF, "run", *(["--full"] if full else []), "-o", self.folder, "--", PROGRAM, *arguments],
            env=environment, check=True, capture_output=True, text=True).stdout
        truth = float(re.search(r"^([0-9.]+) ms a step$", output, re.M)[1])
        report = subprocess.run([TRAINPROF, "report", self.folder, "--format", "json"],
                                check=True, capture_output=True, text=True).stdout
        self.report = json.loads(report)
        return truth, self.report["ranks"][0]

    def assert_mean(self, rank, truth, off=MOST_OFF):
        steps = rank["steps"]
        self.assertEqual(steps["clock"], "device")
        self.assertAlmostEqual(steps["mean_ms"] / truth, 1, delta=off)
        account = rank["devices"][0]["account"]
        self.assertEqual(sum(line["total_ns"] for line in account), rank["device_steps"]["window_ns"])

    def assert_typical(self, rank, truth, off=0.1):
        """Costs are drawn at random: single steps vary more than their mean."""
        self.assertAlmostEqual(rank["steps"]["median_ms"] / truth, 1, delta=off)

    def test_a_host_that_runs_ahead(self):
        truth, rank = self.record("--pace", "ahead")
        self.assert_mean(rank, truth)
        self.assert_typical(rank, truth)
        self.assertGreater(rank["devices"][0]["busy_fraction"], 0.98)
        # Nothing holds the host back: at the end it is many steps ahead.
        self.assertGreater(rank["device_steps"]["host_ahead_at_end_ms"], 10 * truth)
        self.assertLess(rank["steps"]["host_mean_ms"], 0.5 * truth)

    def test_a_queue_that_is_full(self):
        truth, rank = self.record("--pace", "queue", "--kernels", "20", "--kernel-us", "100",
                                  settings="queue_depth=64")
        self.assert_mean(rank, truth)
        self.assert_typical(rank, truth)

    def test_one_launch_of_a_graph_a_step(self):
        truth, rank = self.record("--pace", "graph")
        self.assert_mean(rank, truth)
        self.assert_typical(rank, truth)

    def test_bursts_between_waits(self):
        truth, rank = self.record("--pace", "every", "--steps", "65")
        self.assert_mean(rank, truth)
        self.assert_typical(rank, truth, 0.25)  # a busy machine is late after each wait

    def test_a_loop_that_waits_in_each_step(self):
        truth, rank = self.record("--pace", "sync", "--host-us", "1000")
        self.assert_mean(rank, truth)
        self.assertLess(abs(rank["device_steps"]["host_ahead_at_end_ms"]), truth)

    def test_steps_without_gpu_detail_of_a_host_that_runs_ahead(self):
        """What they kept the device busy with is known of a sample alone, whose costs were drawn at random."""
        truth, rank = self.record("--pace", "ahead", "--steps", "400", "--kernel-us", "100", full=False)
        self.assertLess(rank["device_steps"]["count"], rank["steps"]["count"])
        self.assert_mean(rank, truth, 0.05)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
