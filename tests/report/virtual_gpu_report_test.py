"""A training loop on the virtual GPU, recorded, reported and exported: kernels, accounts, the program's
own lines, arrows. What it shows is simulated; that nothing is lost on the way is not.

usage: virtual_gpu_report_test.py TRAINPROF PROGRAM VIRTUAL_GPU_LIBRARIES SOURCE
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TRAINPROF, PROGRAM, LIBRARIES, SOURCE = (os.path.abspath(path) for path in sys.argv[1:5])
STEPS = 40


def lines_of(function):
    """The lines of a function's definition in the program's source."""
    with open(SOURCE, encoding="utf-8") as file:
        lines = file.read().split("\n")
    first = next(i for i, line in enumerate(lines) if line == f"  void {function}() {{")
    return range(first + 1, lines.index("  }", first) + 2)


class Report(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.run_folder = os.path.join(cls.folder.name, "run")
        cls.program = os.path.join(cls.folder.name, "training_loop")
        shutil.copy(PROGRAM, cls.program)
        environment = dict(os.environ, LD_LIBRARY_PATH=LIBRARIES)
        cls.output = subprocess.run(
            [TRAINPROF, "run", "--full", "-o", cls.run_folder, "--", cls.program, "--steps", str(STEPS),
             "--item-every", "1", "--cpu-tensors", "--pin-memory", "off"],
            env=environment, check=True, capture_output=True, text=True).stdout
        os.remove(cls.program)  # the report needs only what the run has left
        cls.report = json.loads(cls.trainprof("report", cls.run_folder, "--format", "json"))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @staticmethod
    def trainprof(*arguments):
        return subprocess.run([TRAINPROF, *arguments], check=True, capture_output=True, text=True).stdout

    def finding(self, rule):
        found = [f for f in self.report["findings"] if f["rule"] == rule]
        self.assertEqual(len(found), 1, f"{rule}: {[f['rule'] for f in self.report['findings']]}")
        return found[0]

    def assert_first_place_in(self, rule, function):
        place = self.finding(rule)["where"][0]
        self.assertTrue(place["file"].endswith("training_loop.cpp"), place)
        self.assertIn(place["line"], lines_of(function))
        self.assertEqual(place["function"].split("::")[-1], function)  # Clang: with all around it

    def test_all_that_the_device_did_is_there(self):
        done = re.search(r"device did (\d+) kernels, (\d+) copies, (\d+) memsets", self.output)
        events = self.report["ranks"][0]["events"]
        self.assertEqual(events["kernels"], int(done[1]))
        self.assertEqual(events["copies"], int(done[2]) + int(done[3]))
        self.assertEqual([q for q in self.report["quality"] if q["severity"] == "data_loss"], [])

    def test_environment_names_what_recorded(self):
        self.assertEqual(self.report["environment"]["cupti.state"], "recording")
        self.assertIn("cupti.version", self.report["environment"])

    def test_the_account_of_the_device_is_exact(self):
        rank = self.report["ranks"][0]
        self.assertEqual(rank["device_steps"]["count"], rank["steps"]["count"])
        device = rank["devices"][0]
        self.assertEqual(sum(line["total_ns"] for line in device["account"]),
                         rank["device_steps"]["window_ns"])
        self.assertGreater(device["busy_fraction"], 0)
        self.assertTrue(0 < device["theoretical_occupancy"] <= 1)
        self.assertGreater(device["multiprocessors"], 0)

    def test_findings_name_the_programs_own_lines(self):
        if "libdw" in os.environ.get("TRAINPROF_TEST_ABSENT", ""):
            self.skipTest("needs libdw")
        self.assert_first_place_in("host-sync", "ReadLoss")
        self.assert_first_place_in("cpu-tensor", "MakeNoise")

    def test_the_export_has_an_arrow_to_each_operation_and_stacks(self):
        path = os.path.join(self.folder.name, "trace.json")
        self.trainprof("export", self.run_folder, "-o", path)
        with open(path, encoding="utf-8") as file:
            events = json.load(file)["traceEvents"]
        device = [e for e in events if e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
        ends = {e["id"] for e in events if e["ph"] == "f"}
        self.assertEqual(ends, {e["id"] for e in events if e["ph"] == "s"})
        self.assertEqual(len(ends), len(device))
        self.assertTrue(any("Call stack" in e.get("args", {}) for e in events))
        kernel = next(e for e in device if e["cat"] == "kernel")
        self.assertLessEqual({"grid", "block", "registers per thread", "shared memory", "stream",
                              "correlation", "theoretical occupancy %"}, set(kernel["args"]))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
