"""`trainprof run` of a CUDA program on the virtual GPU: what the card says, and what is left behind."""
import glob
import json
import os
import signal

import harness
from harness import TIMEOUT_S, TrainprofTest, wait_until


class Gpu(TrainprofTest):
    def run_program(self, *mode, **variables):
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"], **variables)
        return self.trainprof("run", "--", os.environ["TRAINPROF_TEST_CUDA"], *mode, env=env)

    def is_gone(self, group):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        return False

    def leftovers(self):
        return glob.glob(os.path.join(self.the_run_folder(), "*", "*.slots"))

    def test_device_work_is_in_the_card_and_no_buffer_is_left(self):
        result = self.run_program("kernels", "100")
        self.assertEqual(result.stdout, b"output\n")
        self.assertIn(b"100 device operations", result.stderr)
        self.assertNotIn(b"note:", result.stderr)
        self.assertEqual(self.leftovers(), [])

    def test_who_holds_cupti_is_named(self):
        result = self.run_program("kernels", "5", VGPU_FAULTS="another_subscriber")
        self.assertEqual((result.returncode, result.stdout), (0, b"output\n"))
        self.assertIn(b"note: GPU: CUPTI is held by 'Nsight Systems'.", result.stderr)

    def test_a_killed_program_keeps_what_was_recorded(self):
        result = self.run_program("kernels", "5000", VGPU_FAULTS="crash_at=2000")
        self.assertEqual(result.returncode, 128 + 9)
        self.assertRegex(result.stderr, rb" 99[0-9] calls")
        self.assertEqual(self.leftovers(), [])

    def test_a_run_killed_with_its_supervisor_is_recovered_when_it_is_read(self):
        progress = self.path("progress")
        with open(progress, "wb") as file:
            file.truncate(8 * (1 + (1 << 20)))  # cuda_program.h
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"],
                               VGPU_FAULTS="withheld_until_exit")
        process = self.start("run", "--", os.environ["TRAINPROF_TEST_CUDA"], "killed", progress, env=env)

        def launches():
            with open(progress, "rb") as file:
                return int.from_bytes(file.read(8), "little")
        wait_until(lambda: launches() > 500, "launches")
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)
        # The program dies a moment after its supervisor; what lives is not recovered.
        wait_until(lambda: self.is_gone(process.pid), "the end of the whole group")
        self.assertNotEqual(self.leftovers(), [])
        report = self.trainprof("report", self.the_run_folder(), "--format", "json")
        self.assertEqual(report.returncode, 0, report.stderr)
        rank = json.loads(report.stdout)["ranks"][0]
        if harness.HARD_GPU:
            told = {item["kind"] for item in json.loads(report.stdout)["quality"]}
            self.assertIn("launches_without_kernel", told)
        else:
            self.assertGreater(rank["events"]["kernels"], 400)
        self.assertEqual(self.leftovers(), [])

    def test_off_is_no_trouble(self):
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"])
        result = self.trainprof("run", "--no-gpu", "--", os.environ["TRAINPROF_TEST_CUDA"], "kernels",
                                "5", env=env)
        self.assertNotIn(b"GPU:", result.stderr)
        self.assertIn(b" 0 device operations", result.stderr)


if __name__ == "__main__":
    harness.main()
