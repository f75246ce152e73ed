"""A loop on the virtual GPU whose loader is too slow, which a queue that was full at the beginning hides from the
first steps, the ones with GPU detail: what a report at default settings says of it.

usage: gpu_detail_report_test.py TRAINPROF PROGRAM VIRTUAL_GPU_LIBRARIES
"""
import json
import os
import subprocess
import sys
import tempfile
import unittest

TRAINPROF, PROGRAM, LIBRARIES = (os.path.abspath(path) for path in sys.argv[1:4])


class Detail(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def record(self, decode_us):
        """480 steps of 30 kernels of 60 us, 40 batches ready."""
        run = os.path.join(self.folder, "run")
        subprocess.run(
            [TRAINPROF, "run", "-o", run, "--", PROGRAM, "--steps", "480", "--workers", "1", "--decode-us",
             str(decode_us), "--queue", "40", "--kernels", "30", "--item-every", "1"],
            env=dict(os.environ, LD_LIBRARY_PATH=LIBRARIES), check=True, capture_output=True)
        text = subprocess.run([TRAINPROF, "report", run], check=True, capture_output=True, text=True).stdout
        report = subprocess.run([TRAINPROF, "report", run, "--format", "json"], check=True, capture_output=True)
        return json.loads(report.stdout), text

    def test_a_loader_that_falls_behind_later_is_found(self):
        report, text = self.record(4_000)
        rank = report["ranks"][0]
        others = rank["other_steps"]
        self.assertGreater(others["count"], 300)
        self.assertGreater(others["loader_wait_ms_per_step"], 1.5 * rank["loader_wait"]["ms_per_step"])
        found = [finding for finding in report["findings"] if finding["rule"] == "input-bound"]
        self.assertEqual(len(found), 1, text)
        self.assertIn("without GPU detail", found[0]["title"])
        self.assertLess(found[0]["confidence"], 1)
        # The device would have had work: what the wait cost is about all of it.
        self.assertGreater(found[0]["gain_ms_per_step"]["high"], 0.7 * others["loader_wait_ms_per_step"])
        self.assertNotIn("No findings", text)
        unlike = [item for item in report["quality"] if item["kind"] == "steps_unlike_gpu_detail"]
        self.assertEqual(bool(unlike), others["is_unlike"])
        self.assertEqual("; but steps without GPU detail take" in report["verdict"], others["is_unlike"])

    def test_a_loader_that_keeps_up_passes(self):
        report, text = self.record(300)
        rank = report["ranks"][0]
        self.assertGreater(rank["other_steps"]["count"], 300)
        waits_ms = max(rank["loader_wait"]["ms_per_step"], rank["other_steps"]["loader_wait_ms_per_step"])
        if waits_ms < 0.02:  # 1 % of a step; on a busy machine it may not keep up
            self.assertIn("input-bound", rank["rules_passed"], text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
