"""`trainprof run` of a CUDA program on the virtual GPU: what the card says, and what is left behind."""
import glob
import json
import os
import signal
import time

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
        self.check_recovery()

    def test_so_is_one_whose_buffers_are_in_memory(self):
        self.check_recovery("--gpu-buffers", "/dev/shm")
        self.assertEqual(glob.glob(f"/dev/shm/trainprof-{self.segment()}*"), [])

    def segment(self):
        """Its name, without what tells that it is sealed."""
        (path,) = glob.glob(os.path.join(self.the_run_folder(), "*", "*.tp[sz]"))
        return os.path.splitext(os.path.basename(path))[0]

    def check_recovery(self, *flags):
        progress = self.path("progress")
        with open(progress, "wb") as file:
            file.truncate(8 * (1 + (1 << 20)))  # cuda_program.h
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"],
                               VGPU_FAULTS="withheld_until_exit,complete_at_flush")
        process = self.start("run", *flags, "--", os.environ["TRAINPROF_TEST_CUDA"], "killed", progress, env=env)

        def launches():
            with open(progress, "rb") as file:
                return int.from_bytes(file.read(8), "little")
        wait_until(lambda: launches() > 500, "launches")
        time.sleep(1.5)  # in which CUPTI is flushed: the kernels of then have their times
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(TIMEOUT_S)
        # The program dies a moment after its supervisor; what lives is not recovered.
        wait_until(lambda: self.is_gone(process.pid), "the end of the whole group")
        self.assertNotEqual(self.leftovers(), [])
        in_memory = glob.glob(f"/dev/shm/trainprof-{self.segment()}*")
        self.assertEqual(len(in_memory), 1 if flags else 0)
        report = self.trainprof("report", self.the_run_folder(), "--format", "json")
        self.assertEqual(report.returncode, 0, report.stderr)
        rank = json.loads(report.stdout)["ranks"][0]
        self.assertGreater(rank["events"]["kernels"], 400)
        told = {item["kind"]: item["detail"] for item in json.loads(report.stdout)["quality"]}
        self.assertIn("device work up to CUPTI's last flush", told["undelivered_at_end"])
        self.assertEqual(self.leftovers(), [])

    def test_off_is_no_trouble(self):
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"])
        result = self.trainprof("run", "--no-gpu", "--", os.environ["TRAINPROF_TEST_CUDA"], "kernels",
                                "5", env=env)
        self.assertNotIn(b"GPU:", result.stderr)
        self.assertIn(b" 0 device operations", result.stderr)


if __name__ == "__main__":
    harness.main()
