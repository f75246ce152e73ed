"""The JSON report keeps its contract: docs/report.schema.json, exact sums, exit codes.

usage: report_schema_test.py TRAINPROF SOURCE_DIR CORPUS_DIR [--write-samples]
Inputs: the traces written below, every recording in samples/, and the corpus where it is present.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

TRAINPROF, SOURCE, CORPUS = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
WRITE_SAMPLES = "--write-samples" in sys.argv  # replaces the expected reports by today's
SCHEMA = json.loads((SOURCE / "docs/report.schema.json").read_text())


def run(*arguments):
    return subprocess.run([TRAINPROF, *map(str, arguments)], capture_output=True, text=True)


def kineto(steps, wait=0, names=("train.py(3): main",), every=1):
    """A host thread whose steps wait, every so many of them, launch a kernel each, and nothing else."""
    events = []
    for i in range(steps):
        t = i * 1000
        wait_us = wait if (i + 1) % every == 0 else 0

        def add(name, cat, ts, dur, **extra):
            events.append({"ph": "X", "name": name, "cat": cat, "ts": ts, "dur": dur,
                           "pid": 1, "tid": 1, **extra})

        add(f"ProfilerStep#{i}", "user_annotation", t, 1000)
        if wait_us:
            add("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "user_annotation",
                t, wait_us, args={"Call stack": ";".join(names)})
        add("cudaLaunchKernel", "cuda_runtime", t + wait_us + 5, 5, args={"correlation": i + 1})
        events.append({"ph": "X", "name": "gemm", "cat": "kernel", "ts": t + wait_us + 12,
                       "dur": 1000 - wait_us - 12, "pid": 0, "tid": 7,
                       "args": {"device": 0, "stream": 7, "correlation": i + 1}})
    return {"schemaVersion": 1, "traceEvents": events}


class ReportSchema(unittest.TestCase):
    def report(self, path):
        done = run("report", path, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        jsonschema.validate(report, SCHEMA)
        for rank in report["ranks"]:
            steps, of_devices = rank["steps"], rank["device_steps"]
            accounts = [(rank["host_account"], steps["window_ns"], steps["host_mean_ms"])]
            for device in rank["devices"]:
                accounts.append((device["account"], of_devices["window_ns"], of_devices["mean_ms"]))
            for account, window, mean in accounts:
                self.assertEqual(sum(line["total_ns"] for line in account), window)
                mean = window / 1e6 if mean is None else mean
                total = sum(line["ms_per_step"] for line in account)
                self.assertAlmostEqual(total, mean, delta=1e-6 * max(1, mean))
            other = next(c for c in rank["host_account"] if c["class"] == "other")
            self.assertEqual(sum(i["total_ns"] for i in rank["host_other"]), other["total_ns"])
        for finding in report["findings"]:
            gain = finding["gain_ms_per_step"]
            self.assertLessEqual(gain["low"], gain["expected"], finding["rule"])
            self.assertLessEqual(gain["expected"], gain["high"], finding["rule"])
            self.assertLessEqual(gain["further"], gain["expected"], finding["rule"])
        self.assertEqual(done.stdout, run("report", path, "--format", "json").stdout)
        return report

    def write(self, content):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "trace.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_input_bound_trace_has_the_finding_and_fails_the_gate(self):
        path = self.write(kineto(6, wait=400))
        report = self.report(path)
        self.assertEqual([f["rule"] for f in report["findings"]], ["input-bound"])
        finding = report["findings"][0]
        self.assertEqual(finding["where"][0]["file"], "train.py")
        self.assertEqual(finding["where"][0]["line"], 3)
        self.assertEqual(finding["count_per_step"], 1.0)
        self.assertEqual(run("check", path).returncode, 1)
        self.assertEqual(run("check", path, "--exit-zero").returncode, 0)

    def test_a_wait_of_every_fifth_step_is_told_from_one_of_all(self):
        path = self.write(kineto(40, wait=800, every=5))
        gain = self.report(path)["findings"][0]["gain_ms_per_step"]
        self.assertEqual((gain["rare"]["steps"], gain["rare"]["every"]), (8, 5))
        self.assertGreater(gain["rare"]["ms"], 0.6)  # of 0.8 at most, less with workers that need the CPU, too
        self.assertLess(gain["rare"]["ms"], 0.81)
        self.assertEqual(gain["by_step"]["steps"], 39)  # what was under way before the first one is not known
        self.assertLessEqual(gain["by_step"]["median"], 0)
        text = run("report", path).stdout
        self.assertRegex(" ".join(text.split()),
                         r"most of it once in 5 steps, 0\.\d ms each; the median step gains 0\.0 ms")
        gain = self.report(self.write(kineto(40, wait=400)))["findings"][0]["gain_ms_per_step"]
        self.assertNotIn("rare", gain)
        self.assertAlmostEqual(gain["by_step"]["median"], 0.35, delta=0.06)

    def test_healthy_trace_passes_the_gate_and_says_what_was_not_checked(self):
        path = self.write(kineto(6))
        report = self.report(path)
        self.assertEqual(report["findings"], [])
        self.assertEqual([s["rule"] for s in report["skipped"]], ["input-bound"])
        self.assertEqual(run("check", path).returncode, 0)

    def test_hostile_names_stay_valid_json(self):
        hostile = 'x"\\\u0000</script>\u202e' + "A" * 100_000 + "(1): f"
        self.report(self.write(kineto(6, wait=400, names=(hostile,))))

    def test_several_formats_at_once(self):
        path = self.write(kineto(6, wait=400))
        out = path.parent / "report.json"
        done = run("analyze", path, "--format", f"json={out}", "--format", "text")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("VERDICT", done.stdout)
        jsonschema.validate(json.loads(out.read_text()), SCHEMA)

    def test_a_folder_of_traces_is_a_job_of_ranks(self):
        path = self.write(kineto(6))
        for rank in (0, 1):
            content = kineto(6) | {"distributedInfo": {"rank": rank, "world_size": 2}}
            (path.parent / f"rank{rank}.json").write_text(json.dumps(content))
        path.unlink()
        report = self.report(path.parent)
        self.assertEqual([r["rank"] for r in report["ranks"]], [0, 1])
        self.assertEqual(report["ranks"][1]["world_size"], 2)

    def test_a_file_that_is_no_trace_does_not_hide_the_ranks_beside_it(self):
        path = self.write(kineto(6))
        (path.parent / "settings.json").write_text('{"lr": 0.1}')
        report = self.report(path.parent)
        self.assertEqual(len(report["ranks"]), 1)
        self.assertEqual([q["kind"] for q in report["quality"]], ["unreadable_file"])

    def test_unreadable_input_and_usage_have_their_own_exit_codes(self):
        self.assertEqual(run("report", "/nonexistent/trace.json").returncode, 4)
        self.assertEqual(run("report", self.write("{\"schema\": 1}")).returncode, 4)
        self.assertEqual(run("report").returncode, 2)
        self.assertEqual(run("report", self.write(kineto(2)), "--format", "tea").returncode, 2)
        self.assertEqual(run("check", "/nonexistent").returncode, 4)

    def test_files_of_other_tools_say_what_to_do(self):
        folder = self.write("{}").parent
        for name, content, advice in (
                ("a.nsys-rep", b"\x00\x01report", "Nsight Systems"),
                ("a.QDREP", b"\x00\x01report", "trainprof run -- PROGRAM"),
                ("a.sqlite", b"SQLite format 3\x00", "SQLite"),
                ("renamed.bin", b"SQLite format 3\x00", "SQLite"),
                ("a.ncu-rep", b"NVR\x00", "Nsight Compute"),
                ("a.xplane.pb", b"\x0a\x05abc", ".trace.json.gz"),
                ("a.pftrace", b"\x0a\x05abc", "traceconv json"),
                ("a.zip", b"PK\x03\x04abc", "zip"),
                ("a.json.zst", b"\x28\xb5\x2f\xfdabc", "zstd -d"),
                ("a.pt", b"\x80\x02abc", "torch.save"),
                ("objects.json", b'[{"epoch": 1}, {"epoch": 2}]', "without a single event")):
            (folder / name).write_bytes(content)
            done = run("report", folder / name)
            self.assertEqual((done.returncode, done.stdout), (4, ""), name)
            self.assertIn(advice, done.stderr)

    def test_a_gpu_without_a_name_leaves_no_hole_and_evidence_has_its_step(self):
        content = kineto(6, wait=400)
        text = run("report", self.write(content)).stdout
        self.assertRegex(text, r"\nGPU 0[^ ,]*, ms/step\n")
        self.assertRegex(text, r"took 0\.4 ms at [0-9.]+ ms,\s+step [0-5]\n")
        finding = self.report(self.write(content))["findings"][0]
        for evidence in finding["evidence"]:
            self.assertEqual(evidence["step"], evidence["begin_ns"] // 1_000_000)

    def test_what_other_holds_is_shown_by_name_and_adds_up(self):
        content = kineto(6)
        for i in range(6):
            content["traceEvents"].append({"ph": "X", "cat": "user_annotation", "pid": 1, "tid": 1,
                                           "name": f"tokenize {i}", "ts": i * 1000 + 100, "dur": 680})
        path = self.write(content)
        rank = self.report(path)["ranks"][0]
        self.assertEqual(rank["host_other"][0]["name"], "tokenize")
        self.assertEqual(rank["host_other"][0]["total_ns"], 6 * 680_000)
        text = run("report", path).stdout
        self.assertRegex(text, r"range tokenize +0\.680 +68\.0 %\n")
        self.assertRegex(text, r"nothing recorded +0\.[0-9]+")

    def test_samples_give_the_reports_beside_them(self):
        samples = sorted((SOURCE / "samples").glob("*/recording"))
        self.assertGreater(len(samples), 0)
        for recording in samples:
            with self.subTest(sample=recording.parent.name):
                report = self.report(recording)
                report["input"]["path"] = recording.name
                for rank in report["ranks"]:
                    rank["path"] = pathlib.Path(rank["path"]).name
                expected = recording.parent / "report.json"
                if WRITE_SAMPLES:
                    expected.write_text(json.dumps(report, indent=2) + "\n")
                self.assertEqual(report, json.loads(expected.read_text()))

    def test_corpus_reports_keep_the_schema(self):
        if not CORPUS:
            self.skipTest("no corpus folder: set TRAINPROF_CORPUS")
        for path in sorted(pathlib.Path(CORPUS).rglob("*.json.gz")):
            if path.name != "not_a_trace.json.gz":
                with self.subTest(path=path.name):
                    self.report(path)


class Readme(unittest.TestCase):
    # Its first lines are a report of a sample, shortened: lines are left out, and what "(...)" or "..." stands for.
    def test_its_figures_are_those_of_the_sample(self):
        text = (SOURCE / "README.md").read_text()
        command, lines = text.split("$ trainprof ", 1)[1].split("```", 1)[0].split("\n", 1)
        report = " ".join(run(*command.split()[:1], SOURCE / command.split()[1]).stdout.split())
        shown = [part for line in lines.splitlines() for part in line.removesuffix("...").split(";")]
        self.assertGreater(len(shown), 8)
        for part in shown:
            self.assertIn(" ".join(part.split()), report)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
