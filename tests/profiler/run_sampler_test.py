"""The host sampler of `trainprof run`: what it records, and that nobody notices it."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

import harness
from harness import TIMEOUT_S, TrainprofTest, wait_until

STEPS = os.environ.get("TRAINPROF_TEST_NVTX", "")
FAKE_NVML = os.environ.get("TRAINPROF_TEST_NVML", "")


def samplers_below(pid):
    """pids of sampler processes whose parent is `pid`."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(stat, encoding="latin-1") as file:
                text = file.read()
        except OSError:
            continue
        command, rest = text.split("(", 1)[1].rsplit(")", 1)
        if command == "trainprof-host" and int(rest.split()[1]) == pid:
            found.append(int(text.split()[0]))
    return found


class Sampler(TrainprofTest):
    def host_files(self):
        return sorted(glob.glob(os.path.join(self.the_run_folder(), "host-*")))

    def counters(self):
        """Counter events of the Chrome export: [(pid, name, seconds, args)]."""
        for old in glob.glob(self.path("trace*.json")):
            os.unlink(old)
        exported = self.trainprof("export", self.the_run_folder(), "-o", "trace.json")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        events = []
        for path in glob.glob(self.path("trace*.json")):
            with open(path, encoding="utf-8") as file:
                trace = json.load(file)
            events += [(e["pid"], e["name"], e["ts"] / 1e6, e["args"])
                       for e in trace["traceEvents"] if e["ph"] == "C"]
        return events

    def report(self):
        result = self.trainprof("report", self.the_run_folder(), "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def with_nvml(self, mode=""):
        return self.environment(LD_LIBRARY_PATH=FAKE_NVML, FAKE_NVML=mode)

    def test_samples_of_the_machine_and_the_processes_lie_within_the_run(self):
        begin = time.monotonic()
        result = self.trainprof("run", "--", STEPS, "60", "20")
        wall = time.monotonic() - begin
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(self.host_files()), 1)
        self.assertTrue(self.host_files()[0].endswith(".tphz"), "sealed")
        counters = self.counters()
        names = {name for _, name, _, _ in counters}
        self.assertLessEqual({"CPU % of all cores", "Run queue", "CPU % of one core",
                              "Resident MiB"}, names)
        for _, name, seconds, _ in counters:
            self.assertGreaterEqual(seconds, -0.001, name)
            self.assertLessEqual(seconds, wall, name)
        samples = {seconds for _, name, seconds, _ in counters if name == "CPU % of all cores"}
        self.assertGreaterEqual(len(samples), 2)
        self.assertIn("host sampler", self.report()["environment"])

    def test_a_busy_process_is_seen_busy(self):
        spin = self.script("spin.py", "import time\n"
                           "t = time.time()\n"
                           "while time.time() - t < 1.5: pass\n"
                           "print(100 * time.process_time() / (time.time() - t))\n")
        ran = self.trainprof("run", "--", "sh", "-c", f"{' '.join(spin)}; {STEPS} 3 1")
        got = float(ran.stdout.split()[0])  # of a core: what a busy machine let it have
        busy = [args["user"] + args["system"] for _, name, _, args in self.counters()
                if name == "CPU % of one core"]
        self.assertGreater(max(busy), got / 2)

    def test_none_is_none(self):
        result = self.trainprof("run", "--sample-hz", "0", "--", STEPS, "5", "2")
        self.assertEqual(result.returncode, 0)
        self.assertEqual(self.host_files(), [])
        self.assertEqual(self.counters(), [])

    def test_a_wrong_rate_is_refused(self):
        for rate in ("-1", "1000", "often"):
            self.assertEqual(self.trainprof("run", "--sample-hz", rate, "--", "true").returncode, 125)

    def test_gpus_are_sampled(self):
        self.trainprof("run", "--", STEPS, "60", "20", env=self.with_nvml())
        counters = {name: args for _, name, _, args in self.counters()}
        self.assertEqual(counters["GPU 1 utilisation %"], {"gpu": 87, "memory": 45})
        self.assertEqual(counters["GPU 0 throttled"]["SW power cap"], 1)
        self.assertEqual(counters["GPU 0 power W"]["power"], 345.678)
        report = self.report()
        self.assertEqual(report["environment"]["NVML"], "driver 580.65.06, 2 GPUs")
        facts = {fact["id"]: fact["text"] for fact in report["ranks"][0]["host_facts"]}
        self.assertIn("SW power cap", facts["gpu_throttled"])
        self.assertIn("gen1 x4 of gen5 x16", facts["pcie_link"])
        text = self.trainprof("report", self.the_run_folder()).stdout.decode()
        self.assertIn("GPU 0 was throttled", text)

    def test_without_nvml_it_is_a_fact_and_no_error(self):
        result = self.trainprof("run", "--", STEPS, "20", "20", env=self.with_nvml("none"))
        self.assertNotIn(b"NVML", result.stderr)
        self.assertIn("Driver Not Loaded", self.report()["environment"]["NVML"])

    def test_an_nvml_that_hangs_delays_nothing(self):
        begin = time.monotonic()
        result = self.trainprof("run", "--no-report", "--", "sh", "-c", f"{STEPS} 20 20; exit 7",
                                env=self.with_nvml("hang"))
        self.assertEqual(result.returncode, 7)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertIn("CPU % of all cores", {name for _, name, _, _ in self.counters()})

    def test_an_nvml_that_crashes_costs_the_samples_alone(self):
        result = self.trainprof("run", "--", "sh", "-c", f"{STEPS} 20 20; exit 7",
                                env=self.with_nvml("crash"))
        self.assertEqual(result.returncode, 7)
        self.assertIn(b"host samples end early", result.stderr)
        self.assertEqual(self.report()["ranks"][0]["events"]["ranges"], 60)

    def test_killing_us_keeps_the_samples_and_ends_the_sampler(self):
        process = self.start("run", "--", STEPS, "200", "20", stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
        samplers = wait_until(lambda: samplers_below(process.pid), "the sampler")
        time.sleep(1)
        process.kill()
        process.wait(TIMEOUT_S)
        wait_until(lambda: harness.process_state(samplers[0]) in ("", "Z"), "the sampler's end")
        self.assertTrue(self.host_files()[0].endswith(".tph"), "raw")
        samples = [1 for _, name, _, _ in self.counters() if name == "CPU % of all cores"]
        self.assertGreaterEqual(len(samples), 2)

    def test_killing_the_sampler_costs_the_samples_alone(self):
        process = self.start("run", "--", "sh", "-c", f"{STEPS} 60 20 >/dev/null; exit 9")
        samplers = wait_until(lambda: samplers_below(process.pid), "the sampler")
        os.kill(samplers[0], signal.SIGKILL)
        _, stderr = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(process.returncode, 9)
        self.assertIn(b"host samples end early", stderr)

    def test_ranks_of_a_machine_share_the_work(self):
        # The leak check at a sanitized program's end runs in a process of its own, which would be sampled too.
        command = ("export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0; "
                   "for r in 0 1; do RANK=$r WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_PORT=1 "
                   f"{harness.TRAINPROF} run -o trainprof-ranks -- {STEPS} 60 20 & done; wait")
        result = self.run_plain(["sh", "-c", command])
        self.assertEqual(len(self.host_files()), 2, result.stderr)
        machine = {pid for pid, name, _, _ in self.counters() if name == "CPU % of all cores"}
        self.assertEqual(len(machine), 1)
        ranks = {pid for pid, name, _, _ in self.counters() if name == "Resident MiB"}
        self.assertEqual(len(ranks), 2)

    def test_the_report_reads_the_samples_while_the_run_goes_on(self):
        process = self.start("run", "--", "sh", "-c", f"{STEPS} 100000 5 >out")
        wait_until(lambda: os.path.exists(self.path("out")) and len(self.read("out")) > 400, "steps")
        self.assertIn("CPU % of all cores", {name for _, name, _, _ in self.counters()})
        self.assertIsNone(process.poll())


if __name__ == "__main__":
    harness.main()
