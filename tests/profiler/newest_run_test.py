"""Commands without a PATH take the newest run of the current folder, and say which one."""
import os
import shutil
import time
import unittest

import harness
from harness import TrainprofTest

NVTX_PROGRAM = os.environ.get("TRAINPROF_TEST_NVTX", "")


@unittest.skipUnless(NVTX_PROGRAM, "no collector was built")
class NewestRun(TrainprofTest):
    def record(self, name):
        result = self.trainprof("run", "-q", "-o", name, "--", NVTX_PROGRAM)
        self.assertEqual(result.returncode, 0, result.stderr)

    def check(self, command, name, *flags, **options):
        result = self.trainprof(command, *flags, **options)
        self.assertIn(result.returncode, (0, 1, 3), result.stderr)
        self.assertIn(f"trainprof {command}: newest run here: {name}\n", result.stderr.decode())
        return result.stdout.decode()

    def test_the_run_that_began_last_is_taken(self):
        for name in ("b", "a", "c"):
            self.record(name)
        shutil.rmtree(self.path("c"))
        # Neither the name nor the time of the folder says what began last.
        os.utime(self.path("b"), (time.time() + 60, time.time() + 60))
        self.assertTrue(self.check("report", "a").startswith("a ("))
        self.assertTrue(self.check("analyze", "a").startswith("a ("))
        self.check("check", "a")
        self.check("export", "a", "-o", "trace.json")
        self.assertTrue(os.path.exists(self.path("trace.json")))

    def test_within_a_run_it_is_that_one(self):
        self.record("a")
        self.check("report", ".", cwd=self.path("a"))

    def test_links_hidden_folders_and_other_files_are_left_aside(self):
        self.record("a")
        self.record("z")
        os.rename(self.path("z"), self.path(".z"))
        os.symlink(".z", self.path("latest"))
        os.mkdir(self.path("empty"))
        os.mkdir(self.path("broken"))
        with open(self.path("broken/run.ctl"), "wb") as file:
            file.write(b"short")
        with open(self.path("y.json"), "wb") as file:
            file.write(b"{}")
        self.check("report", "a")

    def test_without_one_the_error_says_so(self):
        for command, flags in (("report", []), ("analyze", []), ("check", []),
                               ("export", ["-o", "trace.json"])):
            result = self.trainprof(command, *flags)
            self.assertEqual((result.returncode, result.stdout), (2, b""))
            self.assertIn(f"trainprof {command}: there is no recording in {self.cwd}",
                          result.stderr.decode())
            self.assertIn("trainprof run", result.stderr.decode())


if __name__ == "__main__":
    harness.main()
