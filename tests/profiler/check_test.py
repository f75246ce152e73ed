"""`trainprof check` never passes what it did not check: each class of input by its exit code."""
import gzip
import json
import os
import re
import shutil

import harness
from harness import TrainprofTest
from traces import training

PASS, FAIL, INCONCLUSIVE, UNREADABLE = 0, 1, 3, 4


class CheckTest(TrainprofTest):
    def put(self, name, content):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        with open(path, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path

    def check(self, path, code, *said, flags=()):
        """The check's output, which is on stdout alone and holds each text of `said`."""
        result = self.trainprof("check", path, *flags)
        output = result.stdout.decode()
        self.assertEqual(result.returncode, code, output + result.stderr.decode())
        for text in said:
            self.assertIn(text, output)
        return output

    def inconclusive(self, path, *said):
        self.check(path, INCONCLUSIVE, "INCONCLUSIVE", *said)
        report = json.loads(self.trainprof("report", path, "--format", "json").stdout)
        self.assertEqual(report["check"]["result"], "inconclusive")
        self.assertNotEqual(report["check"]["inconclusive"], [])
        self.assertIn("INCONCLUSIVE", self.trainprof("report", path).stdout.decode())


class Traces(CheckTest):
    def test_a_healthy_trace_passes_and_a_failing_one_fails(self):
        self.check(self.put("ok.json", training()), PASS, "PASS")
        self.check(self.put("bad.json", training(wait_us=500)), FAIL, "FAIL: 1 finding")

    def test_a_gzip_that_is_cut_or_changed_at_its_very_end_is_no_pass(self):
        """All of the JSON is there: what says that it is right is not."""
        whole = gzip.compress(json.dumps(training()).encode())
        self.check(self.put("whole.json.gz", whole), PASS)
        for bytes_lost in range(1, 9):
            self.inconclusive(self.put("cut.json.gz", whole[:-bytes_lost]), "damaged_input", "ends early")
        self.inconclusive(self.put("other.json.gz", whole[:-8] + b"sums" + whole[-4:]), "damaged_input")

    def test_a_hole_in_a_name_is_no_pass(self):
        whole = json.dumps(training()).encode()
        self.inconclusive(self.put("hole.json", whole.replace(b"cudaLaunchKernel", b"cuda\0\0\0\0\0\0Kernel", 1)), "nul_byte")

    def test_nothing_to_judge_is_no_pass(self):
        self.inconclusive(self.put("list.json", "[]"), "no steps and no device work")
        self.inconclusive(self.put("empty.json", {"traceEvents": []}))
        self.inconclusive(self.put("names.json", [
            {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "python"}}]))

    def test_damaged_events_are_no_pass_and_their_count_is_printed(self):
        events = ",".join('{"ph":"X","name":%d bad}' % i for i in range(500))
        self.inconclusive(self.put("all.json", '{"traceEvents":[' + events + "]}"),
                          "quality: 500 x unparsable_event [data_loss]")
        text = json.dumps(training())
        one = text.replace('"name": "gemm"', '"name" "gemm"', 1)
        self.inconclusive(self.put("one.json", one), "1 x unparsable_event")

    def test_a_trace_that_ends_early_is_no_pass(self):
        text = json.dumps(training())
        for percent in (30, 50, 90):
            self.inconclusive(self.put("cut.json", text[:len(text) * percent // 100]),
                              "1 x truncated_input")
        self.inconclusive(self.put("between.json", text[:text.rindex(', {"ph"')]))
        bare = json.dumps(training()["traceEvents"])
        self.check(self.put("list.json", bare), PASS)
        for end in (len(bare) - 1, bare.index(', {"ph"', len(bare) // 2)):
            self.inconclusive(self.put("list.json", bare[:end]), "1 x truncated_input")
        packed = gzip.compress(text.encode())
        self.inconclusive(self.put("cut.json.gz", packed[:len(packed) * 6 // 10]))

    def test_events_without_a_time_are_no_pass(self):
        for member in ("ts", "dur"):
            trace = training()
            for event in trace["traceEvents"]:
                if event["name"] == "gemm":
                    del event[member]
            self.inconclusive(self.put(f"no_{member}.json", trace), "no usable time")

    def test_an_error_fails_also_beside_damage(self):
        text = json.dumps(training(wait_us=500)).replace('"pid": 1', '"pid" 1', 1)
        self.check(self.put("bad.json", text), FAIL, "inconclusive: ", "FAIL")

    def test_flags_say_what_is_acceptable(self):
        damaged = self.put("cut.json", json.dumps(training())[:-200])
        self.check(damaged, INCONCLUSIVE)
        self.check(damaged, PASS, "inconclusive: ", "accepted", flags=["--allow-inconclusive"])
        self.check(damaged, PASS, "INCONCLUSIVE", flags=["--exit-zero"])
        bad = self.put("bad.json", training(wait_us=500))
        self.check(bad, FAIL, flags=["--allow-inconclusive"])
        self.check(bad, PASS, "FAIL", flags=["--allow-inconclusive", "--exit-zero"])
        self.check(self.put("no.txt", "x"), UNREADABLE,
                   flags=["--allow-inconclusive", "--exit-zero"])

    def test_what_was_not_checked_is_said_once_and_so_is_what_no_rule_covers(self):
        trace = training()
        for event in trace["traceEvents"]:
            if event["cat"] == "kernel":
                event.update(ts=event["ts"] + 300, dur=600)
            if event["cat"] == "cuda_runtime":
                event["ts"] += 295
        output = self.check(self.put("idle.json", trace), PASS, "launch-bound")
        self.assertIn("PASS: nothing that fails the check in what was checked", output)
        host = training()
        host["traceEvents"] = [e for e in host["traceEvents"] if e["cat"] == "user_annotation"]
        path = self.put("host.json", host)
        output = self.check(path, PASS)
        self.assertEqual(output.count("the trace holds no device work"), 1)
        report = self.trainprof("report", path).stdout.decode()
        self.assertEqual(report.count("the trace holds no device work"), 1)
        self.assertIn("No findings in what was checked: input-bound", report)


class Policies(CheckTest):
    """.trainprof.toml, baselines and comments, from the command line."""

    def policy(self, text):
        self.put(".trainprof.toml", text)

    def source(self, *lines):
        """train.py, and a trace in which its third line waits for data half of each step."""
        self.put("train.py", "\n".join(("import torch", "loader = []", *lines, "")))
        trace = training(wait_us=500)
        # As a file in another checkout had it: only its end is the same.
        for begin in [e["ts"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")]:
            trace["traceEvents"].append(
                {"ph": "X", "cat": "python_function", "name": "/home/ci/checkout/train.py(3): main", "pid": 100,
                 "tid": 1, "ts": begin, "dur": 999, "args": {"Python id": begin + 1, "Python parent id": None}})
        return self.put("trace.json", trace)

    def test_a_regression_fails_names_the_line_and_can_be_ignored_until_a_day(self):
        bad = self.source("for x in loader:", "    pass")
        self.check(bad, FAIL, "TP101", "train.py:3", "FAIL: 1 finding")
        suppression = '[[suppress]]\nrule = "TP101"\nmatch = "train.py"\nreason = "small data"\nexpires = %s\n'
        self.policy(suppression % "2099-12-31")
        self.check(bad, PASS, "ignored TP101", "small data (.trainprof.toml:1, until 2099-12-31)")
        self.policy(suppression % "2020-01-01")
        self.check(bad, FAIL, "expired on 2020-01-01")
        os.unlink(self.path(".trainprof.toml"))
        self.source("for x in loader:  # trainprof: ignore[TP101] small data", "    pass")
        self.check(bad, PASS, "ignored: small data (comment at")

    def test_budgets_fail_and_what_cannot_be_measured_is_no_pass(self):
        good = self.put("ok.json", training())
        self.policy("[budgets.step_time_ms]\nmax = 1.1\n")
        self.check(good, PASS, "ok      TP801 step time p50: 1.0 ms, at most 1.1 ms")
        self.policy("[budgets.step_time_ms]\nmax = 0.9\n")
        self.check(good, FAIL, "error   TP801", "FAIL: 1 broken budget")
        self.policy('[budgets.peak_gpu_memory]\nmax = "1 GiB"\n')
        self.check(good, INCONCLUSIVE, "TP805", "was not recorded")

    def test_a_mistake_in_the_policy_is_no_pass(self):
        good = self.put("ok.json", training())
        self.policy('[check]\nfail-onn = "error"\n')
        result = self.trainprof("check", good)
        self.assertEqual(result.returncode, 2)
        self.assertIn(".trainprof.toml:2: 'fail-onn' is no key of [check], did you mean 'fail-on'?",
                      result.stderr.decode())
        result = self.trainprof("check", good, "--config", "nowhere.toml")
        self.assertEqual(result.returncode, 2)

    def test_what_a_baseline_knows_fails_nothing_and_another_machine_is_inconclusive(self):
        bad = self.put("bad.json", training(wait_us=500))
        good = self.put("ok.json", training())
        self.assertEqual(self.trainprof("baseline", "create", "b.json", bad).returncode, 0)
        self.check(bad, PASS, "known   TP101", "TP810", flags=["--baseline", "b.json"])
        again = self.trainprof("baseline", "create", "b.json", good)
        self.assertEqual(again.returncode, 2)
        self.assertIn("trainprof baseline update", again.stderr.decode())
        self.assertEqual(self.trainprof("baseline", "update", "b.json", good).returncode, 0)
        self.check(bad, FAIL, "that the baseline does not have", flags=["--baseline", "b.json"])
        for name, gpu in (("here.json", "H200"), ("there.json", "V100")):
            device = [{"id": 0, "name": gpu, "computeMajor": 9, "computeMinor": 0}]
            self.put(name, training(deviceProperties=device))
        self.assertEqual(self.trainprof("baseline", "create", "c.json", "here.json").returncode, 0)
        self.check("here.json", PASS, flags=["--baseline", "c.json"])
        self.check("there.json", INCONCLUSIVE, "H200", "V100", flags=["--baseline", "c.json"])
        with open(self.path("c.json"), encoding="utf-8") as file:
            whole = file.read()
        for content in ("", "{}", whole[:-100]):
            self.put("broken.json", content)
            self.assertEqual(self.trainprof("check", good, "--baseline", "broken.json").returncode, UNREADABLE)

    def test_runs_of_which_records_are_missing_make_no_baseline(self):
        damaged = self.put("cut.json", json.dumps(training())[:-200])
        result = self.trainprof("baseline", "create", "b.json", damaged)
        self.assertEqual(result.returncode, INCONCLUSIVE)
        self.assertIn("--allow-inconclusive", result.stderr.decode())
        self.assertFalse(os.path.exists(self.path("b.json")))

    def test_several_runs_a_side_are_compared_together(self):
        paths = [self.put(f"run{i}.json", training(wait_us=5 + i % 2)) for i in range(5)]
        self.assertEqual(self.trainprof("baseline", "create", "b.json", *paths).returncode, 0)
        result = self.trainprof("check", *paths, "--baseline", "b.json")
        self.assertEqual(result.returncode, PASS, result.stdout.decode())

    def test_the_starter_is_a_policy_and_explains_itself(self):
        good = self.put("ok.json", training())
        self.assertEqual(self.trainprof("init").returncode, 0)
        self.check(good, PASS)
        self.assertEqual(self.trainprof("init").returncode, 2)
        os.unlink(self.path(".trainprof.toml"))
        self.assertEqual(self.trainprof("init", good).returncode, 0)
        self.check(good, PASS, "TP801 step time p50")
        # All that stands behind a "#" and is no sentence is a policy, too.
        with open(self.path(".trainprof.toml"), encoding="utf-8") as file:
            lines = [line[2:] if re.match(r"# (\[|[a-z-]+ = )", line) else line for line in file]
        self.policy("".join(lines))
        result = self.trainprof("check", good)
        self.assertIn(result.returncode, (PASS, FAIL, INCONCLUSIVE), result.stderr.decode())
        self.assertIn("TP805", result.stdout.decode())

    def test_each_rule_is_explained_with_an_example(self):
        names = [line.split()[:2] for line in self.trainprof("explain").stdout.decode().splitlines()
                 if line.startswith("  TP") and not line.startswith("  TP8")]
        self.assertEqual(len(names), 15)
        for code, slug in names:
            for name in (code, slug):
                result = self.trainprof("explain", name)
                text = result.stdout.decode()
                self.assertEqual(result.returncode, 0, name)
                self.assertIn(f"ignore[{code}]", text)
                self.assertIn("# before", text)
                self.assertIn("# after", text)
        self.assertEqual(self.trainprof("explain", "TP810").returncode, 0)
        self.assertEqual(self.trainprof("explain", "TP999").returncode, 2)


class Ranks(CheckTest):
    def test_ranks_that_are_all_there_are_judged_together(self):
        self.put("job/rank0.json", training(rank=0))
        self.put("job/rank1.json", training(rank=1))
        self.check(self.path("job"), PASS)
        self.put("job/rank1.json", training(rank=1, wait_us=500))
        self.check(self.path("job"), FAIL)
        report = self.trainprof("report", self.path("job")).stdout.decode()
        self.assertIn("rank 1    TP101 input-bound", report)

    def test_a_rank_that_is_gone_or_unreadable_is_no_pass(self):
        self.put("job/rank0.json", training(rank=0))
        self.inconclusive(self.path("job"), "of 2 ranks these were not judged")
        self.check(self.path("job/rank0.json"), PASS)  # one file, named by the user
        bad = json.dumps(training(rank=1, wait_us=500)).encode()
        for content in (b"", b"\x00" * 5000, gzip.compress(bad)[:60]):
            self.put("job/rank1.json", content)
            self.inconclusive(self.path("job"))
        self.put("job/rank1.json", {"traceEvents": [], "distributedInfo": {"rank": 1,
                                                                           "world_size": 2}})
        self.inconclusive(self.path("job"), "no steps and no device work")


class Recordings(CheckTest):
    def sample(self, name):
        """A copy of a sample's recording, and its segment."""
        copy = self.path(name)
        shutil.copytree(os.path.join(os.environ["TRAINPROF_SAMPLES"], name, "recording"), copy)
        return copy, next(os.path.join(folder, name) for folder, _, names in os.walk(copy)
                          for name in names if name.endswith((".tps", ".tpz")))

    def test_whole_recordings_are_judged_by_their_findings(self):
        self.check(self.sample("trainer_cpu_workers2")[0], PASS)
        self.check(self.sample("trainer_killed")[0], PASS)  # SIGKILL loses nothing
        self.check(self.sample("trainer_cpu_workers0")[0], FAIL)

    def test_one_damaged_chunk_is_no_pass(self):
        recording, segment = self.sample("trainer_cpu_workers0")
        with open(segment, "r+b") as file:
            file.seek(7000)
            file.write(b"\xa5" * 64)
        self.inconclusive(recording, "1 x corrupt_chunk [data_loss]")

    def test_a_killed_process_s_segment_that_lost_its_last_chunk_is_no_pass(self):
        chunk = 16384
        for lose in (os.truncate, self.wipe_from):
            recording, segment = self.sample("trainer_killed")
            size = os.path.getsize(segment)
            self.assertEqual(size % chunk, 0)
            lose(segment, size - chunk)
            self.inconclusive(recording, "truncated_segment" if lose is os.truncate else "corrupt_chunk")
            shutil.rmtree(recording)

    def wipe_from(self, path, offset):
        size = os.path.getsize(path)
        os.truncate(path, offset)
        os.truncate(path, size)

    def test_a_segment_that_was_cut_is_no_pass(self):
        for name in ("trainer_cpu_workers2", "trainer_killed"):
            for percent in (20, 45, 99):
                with self.subTest(name=name, percent=percent):
                    recording, segment = self.sample(name)
                    os.truncate(segment, os.path.getsize(segment) * percent // 100)
                    self.inconclusive(recording)
                    shutil.rmtree(recording)


class Runs(CheckTest):
    def record(self, *program, flags=()):
        result = self.trainprof("run", "-o", self.path("run"), *flags, "--", *program)
        self.addCleanup(shutil.rmtree, self.path("run"), ignore_errors=True)
        return result.stderr.decode()

    def test_a_window_that_never_opened_is_no_pass(self):
        program = [os.environ["TRAINPROF_TEST_NVTX"], "3", "1"]
        for flags in (["--steps", "100:110"], ["--delay", "60"], ["--capture", "nvtx:epoch"]):
            with self.subTest(flags=flags):
                card = self.record(*program, flags=flags)
                self.assertIn("inconclusive: the window of the recording never opened", card)
                self.assertNotIn("No findings", card)
                self.inconclusive(self.path("run"), "the window of the recording never opened")
                shutil.rmtree(self.path("run"))

    def test_a_program_that_died_before_a_step_is_no_pass(self):
        steps = os.environ["TRAINPROF_TEST_NVTX"]
        os.mkfifo(self.path("begun"))
        card = self.record("sh", "-c", f"{steps} 1 60000 >begun & read pushed <begun; kill -9 $!; wait $!")
        self.assertIn("inconclusive: no step is complete", card)
        self.inconclusive(self.path("run"), "the program ended with exit code 137")

    def test_dropped_events_are_no_pass(self):
        self.record(os.environ["TRAINPROF_TEST_NVTX"], "3000", "0", flags=["--max-size", "80K"])
        output = self.trainprof("check", self.path("run")).stdout.decode()
        self.assertIn("dropped_events [data_loss]", output)
        self.assertIn("inconclusive: records are lost or damaged", output)

    def test_the_card_counts_what_was_dropped_once(self):
        card = self.record(os.environ["TRAINPROF_TEST_NVTX"], "8", "2")
        self.assertEqual(card.count("0 records"), 1, card)
        self.assertEqual(card.count("the trace holds no device work"), 1, card)


class Internal(CheckTest):
    def test_an_exception_that_nobody_expects_is_70_and_never_green(self):
        path = self.put("ok.json", training())
        self.check(path, PASS)
        for flags in ((), ("--exit-zero",), ("--allow-inconclusive",)):
            result = self.trainprof("check", path, *flags, env=self.environment(LD_PRELOAD=os.environ["TRAINPROF_TEST_THROWING"]))
            self.assertEqual(result.returncode, 70, result.stdout + result.stderr)
            self.assertIn(b"internal error: made by a test", result.stderr)
            self.assertEqual(result.stdout, b"")


if __name__ == "__main__":
    harness.main()
