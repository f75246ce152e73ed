"""`trainprof diff` as programs and people see it: docs/diff.schema.json, sums, exit codes, words.

usage: diff_test.py TRAINPROF SOURCE_DIR CORPUS_DIR
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import jsonschema

TRAINPROF, SOURCE, CORPUS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
SCHEMA = json.loads((SOURCE / "docs/diff.schema.json").read_text())
SAMPLES = SOURCE / "samples"
INCONCLUSIVE = 3  # exit status


def run(*arguments):
    return subprocess.run([TRAINPROF, "diff", *map(str, arguments)], capture_output=True, text=True)


def kineto(steps, wait_us, kernel_us=600, name="gemm", **members):
    """Steps of a host thread that wait for data, launch a kernel, and end with it."""
    events, t = [], 0
    for i in range(steps):
        wait = wait_us + i % 3
        end = t + wait + 12 + kernel_us

        def add(name, cat, ts, dur, **extra):
            events.append({"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur,
                           "pid": 1, "tid": 1, **extra})

        add(f"ProfilerStep#{i}", "user_annotation", t, end - t)
        add("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation", t, wait,
            args={"Call stack": "train.py(3): main"})
        add("cudaLaunchKernel", "cuda_runtime", t + wait + 5, 5, args={"correlation": i + 1})
        events.append({"ph": "X", "name": name, "cat": "kernel", "ts": t + wait + 12, "dur": kernel_us,
                       "pid": 0, "tid": 7, "args": {"device": 0, "stream": 7, "correlation": i + 1}})
        t = end
    return {"schemaVersion": 1, "traceEvents": events, **members}


class Diff(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def diff(self, *arguments, code=0):
        done = run(*arguments, "--format", "json")
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        diff = json.loads(done.stdout)
        jsonschema.validate(diff, SCHEMA)
        for table in diff["tables"]:
            if table["by"] == "rank":
                continue
            for figure in ("a_ms_per_step", "b_ms_per_step", "difference_ms_per_step"):
                self.assertAlmostEqual(sum(row[figure] for row in table["rows"]),
                                       table["whole"][figure], delta=1e-9, msg=table["by"])
        text = run(*arguments)
        self.assertEqual(text.returncode, code)
        self.assertEqual(" ".join(text.stdout.split()).find(" ".join(diff["verdict"].split())), 0,
                         text.stdout)
        self.assertLessEqual(text.stdout.count("\n"), 50, text.stdout)
        # A finding in several places is one line: each would claim what all of them cost.
        told = re.findall(r"(\w+) \[\w+\] (TP\d+) [^;]*; costs ([^;]*?) ms/step", " ".join(text.stdout.split()))
        self.assertEqual(len(set(told)), len(told), text.stdout)
        for line in text.stdout.splitlines():
            if "/" not in line:  # a path is never cut
                self.assertLessEqual(len(line), 110, line)
        self.assertEqual(done.stdout, run(*arguments, "--format", "json").stdout)
        return diff

    def test_a_slower_loader_is_named_with_its_interval_and_finding(self):
        a, b = self.write("a.json", kineto(40, 20)), self.write("b.json", kineto(40, 320))
        diff = self.diff(a, b)
        self.assertEqual((diff["result"], diff["step_of"]), ("slower", "devices"))
        bounds = diff["step"]["interval_ms_per_step"]
        self.assertTrue(0.25 < bounds["low"] <= 0.3 <= bounds["high"] < 0.35, bounds)
        self.assertEqual(diff["tables"][0]["rows"][0]["name"], "idle_input_wait")
        self.assertEqual([(f["state"], f["rule"]) for f in diff["findings"]], [("new", "input-bound")])
        text = run(a, b).stdout
        self.assertTrue(text.startswith("B is 0.300 ms/step slower than A (0.633 -> 0.933 ms/step, +47.4 %"),
                        text)
        self.assertRegex(text, r"\n  new +\[error\] TP101 input-bound, train.py main; costs - -> 0\.\d+ ms/step\n")
        back = self.diff(b, a)
        self.assertEqual(back["result"], "faster")
        self.assertEqual([f["state"] for f in back["findings"]], ["fixed"])
        self.assertEqual(back["findings"][0]["fingerprint"], diff["findings"][0]["fingerprint"])

    def test_the_same_run_twice_is_equal(self):
        a = self.write("a.json", kineto(4, 20))
        self.assertEqual(self.diff(a, a)["result"], "equal")
        for sample in sorted(SAMPLES.glob("*/recording")):
            with self.subTest(sample=sample.parent.name):
                check = json.loads((sample.parent / "report.json").read_text())["check"]
                code = INCONCLUSIVE if check["inconclusive"] else 0
                self.assertEqual(self.diff(sample, sample, code=code)["result"], "equal")

    def test_a_loader_with_workers_of_the_samples_fixes_the_finding(self):
        diff = self.diff(SAMPLES / "trainer_cpu_workers0/recording", SAMPLES / "trainer_cpu_workers2/recording")
        self.assertEqual(diff["step_of"], "host")
        wait = diff["tables"][0]["rows"][0]
        self.assertEqual((wait["name"], wait["told_from_noise"]), ("input_wait", True))
        self.assertLess(wait["difference_ms_per_step"], -30)
        self.assertEqual([(f["state"], f["rule"]) for f in diff["findings"]], [("fixed", "input-bound")])

    def test_what_cannot_be_compared_is_refused_with_its_reasons(self):
        a = self.write("a.json", kineto(40, 20))
        gpu = [{"id": 0, "name": "H100", "computeMajor": 9, "computeMinor": 0}]
        for name, other, reason in (
                ("gpu.json", kineto(40, 20, deviceProperties=gpu), "gpu"),
                ("world.json", kineto(40, 20, distributedInfo={"rank": 0, "world_size": 8}), "world_size"),
                ("driver.json", kineto(40, 20, cuda_driver_version=12060), None)):
            with self.subTest(name):
                b = self.write(name, other)
                if reason is None:  # not told by the other side
                    self.assertIn("driver", self.diff(a, b)["cautions"][0]["text"])
                    b, a2 = self.write(name, other), self.write("a2.json", kineto(40, 20, cuda_driver_version=12040))
                    diff = self.diff(a2, b, code=3)
                    self.assertEqual([(r["a"], r["b"]) for r in diff["refused"]], [("12040", "12060")])
                    continue
                diff = self.diff(a, b, code=3)
                self.assertEqual((diff["result"], diff["tables"], diff["step"]), ("refused", [], None))
                self.assertIn(reason, [r["id"] for r in diff["refused"]])
                anyway = json.loads(run(a, b, "--anyway", "--format", "json").stdout)
                self.assertNotEqual(anyway["result"], "refused")
                self.assertNotEqual(anyway["refused"], [])
                self.assertEqual(run(a, b, "--anyway").returncode, 0)
        diff = self.diff(a, SAMPLES / "virtual_gpu_habits/recording", code=3)
        self.assertIn("source", [r["id"] for r in diff["refused"]])
        nothing = self.write("none.json", {"schemaVersion": 1, "traceEvents": [
            {"ph": "X", "name": "aten::add", "cat": "cpu_op", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]})
        self.assertEqual(self.diff(a, nothing, code=3)["refused"][0]["id"], "no_steps")
        self.assertEqual(run(a, nothing, "--anyway").returncode, 3)

    def test_few_steps_and_damage_are_inconclusive_and_compared(self):
        a, few = self.write("a.json", kineto(40, 20)), self.write("few.json", kineto(6, 320))
        diff = self.diff(a, few, code=3)
        self.assertEqual(diff["result"], "unknown")
        self.assertIsNone(diff["step"]["interval_ms_per_step"])
        text = json.dumps(kineto(40, 320))
        cut = self.write("cut.json", text[:len(text) * 9 // 10])
        diff = self.diff(a, cut, code=3)
        self.assertEqual((diff["result"], diff["conclusive"]), ("slower", False))
        self.assertEqual(diff["losses"][0]["id"], "data_loss")
        self.assertEqual(run(a, cut, "--anyway").returncode, 0)

    def test_several_runs_a_side(self):
        paths = [self.write(f"{side}{i}.json", kineto(20 + i, wait)) for side, wait in (("a", 20), ("b", 30))
                 for i in range(3)]
        flags = [word for path in paths[:3] for word in ("--base", path)]
        diff = self.diff(*flags, "--", *paths[3:])
        self.assertEqual((len(diff["a"]), len(diff["b"]), diff["result"]), (3, 3, "slower"))
        self.assertNotIn("run_to_run", [c["id"] for c in diff["cautions"]])
        self.assertEqual(diff["findings"], [])
        # The same difference, of one run a side: 1 % of noise is more than 10 us of 640.
        self.assertIn("run_to_run", [c["id"] for c in self.diff(paths[0], paths[3])["cautions"]])

    def test_hostile_names_stay_text_and_json(self):
        evil = "\x1b[31mgemm\u202e</script>" + "x" * 5000
        a, b = self.write("a.json", kineto(20, 20, name=evil)), self.write("b.json", kineto(20, 20, 900, name=evil))
        self.diff(a, b)
        self.assertNotIn("\x1b", run(a, b, "--all").stdout)

    def test_usage_has_its_own_exit_code(self):
        a, b = self.write("a.json", kineto(20, 20)), self.write("b.json", kineto(20, 30))
        for arguments in ([], [a], [a, b, a], [a, b, "--format", "tea"], ["--base", a],
                          ["--base", a, "--base", a, "--", b]):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), arguments)
        self.assertEqual(run(a, "/nonexistent").returncode, 4)
        self.assertEqual(run(a, b, "--format", "json=/nonexistent/x.json").returncode, 74)
        out = self.folder / "out.json"
        done = run(a, b, "--format", f"json={out}", "--format", "text")
        self.assertIn("90 % interval", done.stdout)
        jsonschema.validate(json.loads(out.read_text()), SCHEMA)

    def test_pairs_of_the_corpus(self):
        if not CORPUS:
            self.skipTest("no corpus folder: set TRAINPROF_CORPUS")
        resnet = pathlib.Path(CORPUS) / "kineto_resnet50"
        diff = self.diff(resnet / "workers0.pt.trace.json.gz", resnet / "workers4.pt.trace.json.gz", code=3)
        self.assertEqual(diff["tables"][0]["rows"][0]["name"], "idle_input_wait")
        ranks = pathlib.Path(CORPUS) / "dlrm_8ranks"
        self.assertEqual(self.diff(ranks, ranks)["result"], "equal")
        copy = self.folder / "seven"
        copy.mkdir()
        for rank in range(7):
            shutil.copy(ranks / f"rank{rank}.pt.trace.json.gz", copy)
        diff = self.diff(ranks, copy, code=3)
        self.assertIn("ranks", [r["id"] for r in diff["refused"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
