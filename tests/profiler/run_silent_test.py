"""A run in which no process used NVTX or CUDA: what is still recorded, and what the user is told."""
import json
import re

import harness
from harness import TrainprofTest, wait_until

BUSY = """
import time
while time.process_time() < 0.8: pass
"""


class Silent(TrainprofTest):
    def record(self, *command, flags=()):
        result = self.trainprof("run", "-o", "run", *flags, "--", *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def report(self):
        result = self.trainprof("report", "run")
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode()

    def test_the_report_shows_cpu_memory_and_disk_and_what_to_add(self):
        card = self.record(*self.script("busy.py", BUSY))
        self.assertIn("CPU, memory and disk only", card)
        self.assertIn("trainprof report " + self.path("run"), card)
        text = self.report()
        self.assertRegex(text, r"processes took [1-9]\d* % of a core")
        self.assertRegex(text, r"held up to [1-9]\d* MiB of memory")
        self.assertRegex(text, r"disks: \d+ MB read, \d+ MB written")
        self.assertIn("import trainprof", text)
        self.assertNotIn("wiped", text)

    def test_the_snippet_is_python(self):
        self.record("sleep", "0.3")
        snippet = re.search(r"( {6}import trainprof .*?)\n\n", self.report(), re.DOTALL).group(1)
        lines = [line[6:] for line in snippet.splitlines()]
        compile("\n".join(lines), "snippet", "exec")

    def test_programs_get_the_same_as_figures(self):
        self.record(*self.script("busy.py", BUSY))
        result = self.trainprof("report", "run", "--format", "json")
        facts = {fact["id"]: fact for fact in json.loads(result.stdout)["ranks"][0]["host_facts"]}
        self.assertGreater(facts["run_cpu"]["value"], 1)
        self.assertGreater(facts["run_memory"]["value"], 1)
        self.assertIn("disk_traffic", facts)

    def test_the_gate_does_not_pass_it(self):
        self.record("sleep", "0.3")
        self.assertEqual(self.trainprof("check", "run").returncode, 3)

    def test_a_wiped_environment_is_named(self):
        self.start("run", "-o", "run", "--", "env", "-i", "/bin/sh", "-c", "/bin/sleep 60; :")

        def is_named():
            text = " ".join(self.trainprof("report", "run").stdout.decode().split())
            return re.search(r"environment of \S+ \(process \d+\) was wiped \(env -i", text)
        wait_until(is_named, "the report to name it")

    def test_without_samples_the_card_does_not_claim_them(self):
        card = self.record("true", flags=("--sample-hz", "0"))
        self.assertIn("recorded: nothing", card)
        self.assertEqual(self.trainprof("report", "run").returncode, 4)


if __name__ == "__main__":
    harness.main()
