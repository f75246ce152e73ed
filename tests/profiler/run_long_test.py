"""A long training at default settings: the steps of minutes, as fast as the machine can take them."""
import contextlib
import glob
import json
import os

import harness
from harness import TrainprofTest

STEPS = 200_000
STEPS_OF_TWO_HOURS = 2 * 3600 * 1000 // 8  # of 8 ms
SIZE_BOUND = 2 << 30  # the default of `trainprof run`


class Long(TrainprofTest):
    def environment_of_loop(self):
        return self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"],
                                VGPU_SETTINGS="scale=0", VGPU_STATE="/dev/null")

    def raw_bytes(self):
        total = 0
        for path in glob.glob(os.path.join(self.cwd, "run", "*", "*.tps")):
            with contextlib.suppress(FileNotFoundError):  # it was sealed meanwhile
                total += os.path.getsize(path)
        return total

    def report(self):
        result = self.trainprof("report", "run", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["ranks"][0]

    def test_two_hours_stay_under_the_bound_and_report_works_meanwhile(self):
        loop = [os.environ["TRAINPROF_TEST_LOOP"], "--steps", str(STEPS), "--kernels", "12", "--workers", "0",
                "--decode-us", "0", "--log-every", str(STEPS)]
        run = self.start("run", "--output", "run", "--", *loop, env=self.environment_of_loop())
        # How many chunks there are in turn depends on how soon they are drained: two, on a busy machine.
        harness.wait_until(lambda: self.raw_bytes() > 1 << 18, "the first chunk")
        meanwhile = harness.wait_until(lambda: self.report()["steps"]["count"], "a step")
        largest = 0
        while run.poll() is None:
            largest = max(largest, self.raw_bytes())
        self.assertEqual(run.returncode, 0)
        self.assertGreater(meanwhile, 0)
        self.assertLess(meanwhile, STEPS)
        rank = self.report()
        self.assertEqual(rank["steps"]["count"] + rank["steps"]["warmup_steps"], STEPS)
        self.assertGreaterEqual(rank["events"]["kernels"], 12 * 40)
        a_step = largest / STEPS
        self.assertLess(a_step * STEPS_OF_TWO_HOURS, SIZE_BOUND)
        print(f"{a_step:.0f} bytes a step before sealing: two hours of 8 ms steps take "
              f"{a_step * STEPS_OF_TWO_HOURS / 2**20:.0f} MiB; {meanwhile} steps were seen meanwhile")


if __name__ == "__main__":
    harness.main()
