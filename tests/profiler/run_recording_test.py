"""`trainprof run` over a program that uses NVTX: what is recorded, kept and said about it."""
import json
import os
import re
import resource
import signal
import subprocess
import tempfile

import harness
from harness import TIMEOUT_S, TrainprofTest, wait_until

STEPS = os.environ.get("TRAINPROF_TEST_NVTX", "")


class Recording(TrainprofTest):
    def manifest(self, folder=None):
        with open(os.path.join(folder or self.the_run_folder(), "manifest.json"), "rb") as file:
            return json.load(file)

    def report(self):
        result = self.trainprof("report", self.the_run_folder(), "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def steps_in_report(self):
        """Of all ranks, those set aside as warm-up included."""
        steps = [rank["steps"] for rank in self.report()["ranks"]]
        return sum(each["count"] + each["warmup_steps"] for each in steps)

    def events_on_card(self, stderr):
        match = re.search(r"^recorded: .*?([\d,]+) events?", stderr.decode(), re.MULTILINE)
        self.assertTrue(match, stderr)
        return int(match.group(1).replace(",", ""))

    def test_a_run_is_recorded_sealed_and_summed_up(self):
        result = self.trainprof("run", "--", STEPS, "5", "2")
        self.assertEqual(result.stdout, b"1\n3\n6\n9\n12\n15\n")
        self.assertEqual(self.events_on_card(result.stderr), 15)
        self.assertLessEqual(result.stderr.count(b"\n"), 20)
        self.assertIn(b"trainprof report " + self.the_run_folder().encode(), result.stderr)
        self.assertIn(b"dropped: 0", result.stderr)
        self.assertEqual(self.manifest()["exit_code"], 0)
        self.assertEqual(self.steps_in_report(), 5)

    def test_forked_processes_are_recorded_too(self):
        result = self.trainprof("run", "--", STEPS, "4", "1", "2")
        self.assertIn(b"3 processes", result.stderr)
        self.assertEqual(self.events_on_card(result.stderr), 36)

    def test_killing_the_program_loses_nothing_it_said(self):
        process = self.start("run", "--", "sh", "-c", f"{STEPS} 100000 1 >out & echo $! >pid; wait $!")
        pid = int(self.read_when_there("pid"))
        wait_until(lambda: os.path.exists(self.path("out")) and len(self.read("out")) > 200, "steps")
        os.kill(pid, signal.SIGKILL)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 128 + signal.SIGKILL)
        said = int(self.read("out").decode().split("\n")[-2])
        self.assertGreaterEqual(self.events_on_card(stderr), said)

    def test_children_that_outlive_a_crash_keep_nothing_unsealed(self):
        result = self.trainprof("run", "--", STEPS, "5", "1", "0", "crash")
        self.assertEqual(result.returncode, 128 + signal.SIGSEGV)
        self.assertNotIn(b"still going", result.stderr)
        self.assertEqual(self.manifest()["left_raw"], 0)
        self.assertEqual(self.steps_in_report(), 5)
        self.assertIn(b"note: a crash", result.stderr)
        self.assertIn(b"--no-gpu", result.stderr)

    def test_killing_us_leaves_the_program_alone_and_the_recording_readable(self):
        process = self.start("run", "--", "sh", "-c", f"{STEPS} 300 2 >out; echo done >finished",
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(self.path("out")) and len(self.read("out")) > 20, "steps")
        process.kill()
        process.wait(TIMEOUT_S)
        self.read_when_there("finished")
        self.assertEqual(self.read("out").decode().split("\n")[-2], "900")
        self.assertEqual(self.steps_in_report(), 300)

    def test_report_works_while_the_run_goes_on(self):
        process = self.start("run", "--", "sh", "-c", f"{STEPS} 100000 1 >out")
        wait_until(lambda: os.path.exists(self.path("out")) and len(self.read("out")) > 200, "steps")
        said = int(self.read("out").decode().split("\n")[-2])
        self.assertGreaterEqual(self.steps_in_report(), said // 3 - 1)
        self.assertIsNone(process.poll())

    def test_an_orphan_that_still_records_is_left_unsealed_and_mentioned(self):
        result = self.trainprof("run", "--", "sh", "-c",
                                f"{STEPS} 100000 1 >out 2>/dev/null & echo $! >pid; "
                                "until [ -s out ]; do sleep 0.01; done; exit 3")
        self.addCleanup(os.kill, int(self.read("pid")), signal.SIGKILL)
        self.assertEqual(result.returncode, 3)
        self.assertIn(b"still going", result.stderr)

    def test_a_step_window_records_those_steps_alone(self):
        self.trainprof("run", "--steps", "2:5", "--", STEPS, "10", "1")
        self.assertEqual(self.steps_in_report(), 3)

    def test_around_torchrun_each_rank_has_its_folder(self):
        ranks = "for r in 0 1 2 3; do RANK=$r WORLD_SIZE=4 %s 3 1 & done; wait" % STEPS
        result = self.trainprof("run", "--", "sh", "-c", ranks)
        self.assertIn(b"recorded: 4 ranks, 4 processes, 36 events", result.stderr)
        self.assertEqual(sorted(rank["rank"] for rank in self.report()["ranks"]), [0, 1, 2, 3])

    def check_short_of_disk(self, bound, **options):
        plain = self.run_plain([STEPS, "2000", "0", "3"], **options)
        ours = self.trainprof("run", "--full", "--", STEPS, "2000", "0", "3", **options)
        self.assertEqual(ours.returncode, 0, (bound, ours.stderr))
        self.assertEqual(sorted(ours.stdout.split()), sorted(plain.stdout.split()))
        lost = re.search(rb"not recording|recording stopped|left unsealed|sealing stopped"
                         rb"|dropped: [1-9]", ours.stderr)
        self.assertTrue(lost or self.events_on_card(ours.stderr) == 4 * 6000, (bound, ours.stderr))
        return lost

    def test_a_disk_that_fills_costs_records_and_not_the_run(self):
        lost = 0
        for bound in (0, 4096, 65536, 300_000, 2_000_000):
            lost += bool(self.check_short_of_disk(bound, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_FSIZE, (bound, bound))))
        self.assertGreater(lost, 0)

    def test_a_small_real_disk_that_fills(self):
        disk = tempfile.mkdtemp(dir=self.folder)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "none", disk],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("mounting a small disk needs root")
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.assertTrue(self.check_short_of_disk("200k", cwd=disk))
        strict = self.trainprof("run", "--strict", "--full", "--", STEPS, "2000", "0", "3", cwd=disk)
        self.assertEqual(strict.returncode, 125)


if __name__ == "__main__":
    harness.main()
