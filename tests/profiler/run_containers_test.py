"""Containers that share a folder: all have the same process ids, at the same time."""
import glob
import json
import os
import subprocess
import unittest

import harness
from harness import TIMEOUT_S, TrainprofTest

NVTX = os.environ.get("TRAINPROF_TEST_NVTX", "")
CONTAINER = ["unshare", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]
AT_ONCE = 8
STEPS = 20
RANGES = 3 * STEPS


def containers_work():
    try:
        return subprocess.run([*CONTAINER, "true"], capture_output=True, timeout=TIMEOUT_S).returncode == 0
    except OSError:
        return False


@unittest.skipUnless(containers_work(), "a pid namespace of its own needs root")
class Containers(TrainprofTest):
    def start_all(self, *flags, ranks=False, shell=(), **variables):
        """`trainprof run` in each container, as process 1; fails unless all end well."""
        def environment(i):
            return self.environment(**variables, **({"RANK": str(i)} if ranks else {}))
        started = []
        for i in range(AT_ONCE):
            started.append(subprocess.Popen(
                [*CONTAINER, *shell, harness.TRAINPROF, "run", *flags, "--", NVTX, str(STEPS), "1"],
                cwd=self.cwd, env=environment(i), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
            self.end_with_the_test(started[-1])
        for process in started:
            _, stderr = process.communicate(timeout=TIMEOUT_S)
            self.assertEqual(process.returncode, 0, stderr)
            self.assertNotIn(b"not recording", stderr)

    def ranges(self, folder):
        """Of each rank."""
        report = self.trainprof("report", folder, "--format", "json")
        self.assertEqual(report.returncode, 0, report.stderr)
        return [rank["events"]["ranges"] for rank in json.loads(report.stdout)["ranks"]]

    def test_ranks_in_one_folder_are_all_there(self):
        for job in range(4):
            self.start_all("-o", f"out{job}", ranks=True, SLURM_JOB_ID=str(job), WORLD_SIZE=str(AT_ONCE))
            self.assertEqual(self.ranges(f"out{job}"), [RANGES] * AT_ONCE)
        self.assertEqual(glob.glob(os.path.join(self.cwd, ".trainprof-new-*")), [])

    def test_ranks_that_meet_at_an_address_are_one_run(self):
        """As in Kubernetes, where no launcher has a number for the job."""
        self.start_all("-o", "out", ranks=True, shell=("sh", "-c", '"$0" "$@"; exit $?'),
                       MASTER_ADDR="trainer-0", MASTER_PORT="29500", WORLD_SIZE=str(AT_ONCE))
        self.assertEqual(self.ranges("out"), [RANGES] * AT_ONCE)

    def test_runs_of_one_second_get_a_folder_each(self):
        self.start_all()
        folders = self.run_folders()
        self.assertEqual(len(folders), AT_ONCE)
        for folder in folders:
            self.assertEqual(self.ranges(folder), [RANGES])

    def test_programs_of_one_run_with_the_same_id_stay_apart(self):
        inside = f"{' '.join(CONTAINER)} {NVTX} {STEPS} 1"
        result = self.trainprof("run", "--", "sh", "-c", f"{inside} & {inside} & wait")
        self.assertEqual(result.returncode, 0, result.stderr)
        folder = self.the_run_folder()
        self.assertEqual(len(glob.glob(os.path.join(folder, "pid-*"))), 2)
        self.assertEqual(self.ranges(folder), [RANGES, RANGES])

    def test_a_stage_of_another_is_left_alone(self):
        """Which process is at work in it cannot be told: in a container all are process 1."""
        stage = self.path(".trainprof-new-1")
        os.makedirs(os.path.join(stage, "rank-00000"))
        self.start_all()
        self.assertTrue(os.path.isdir(os.path.join(stage, "rank-00000")))


if __name__ == "__main__":
    harness.main()
