"""`trainprof export`: its outputs, exit codes and messages, one file a rank and all ranks in one."""
import gzip
import json
import os

import harness
from harness import TrainprofTest
from traces import one_step


class Export(TrainprofTest):
    def traces(self, *traces):
        """A folder with these traces, and its path."""
        folder = os.path.join(self.folder, "traces")
        os.makedirs(folder)
        for number, trace in enumerate(traces):
            with open(os.path.join(folder, f"{number}.json"), "w", encoding="ascii") as file:
                json.dump(trace, file)
        return folder

    def export(self, *arguments, code=0):
        result = self.trainprof("export", *arguments)
        self.assertEqual(result.returncode, code, result.stderr)
        return result

    def load(self, name):
        path = os.path.join(self.cwd, name)
        with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
            return json.load(file)

    def report(self, path):
        result = self.trainprof("report", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def test_several_ranks_give_a_file_each(self):
        result = self.export(self.traces(one_step(0), one_step(1)), "-o", "t.json.gz")
        self.assertEqual(result.stdout.split(), [b"t-rank0.json.gz", b"t-rank1.json.gz"])
        self.assertEqual(self.load("t-rank1.json.gz")["distributedInfo"]["rank"], 1)
        self.assertEqual(sorted(os.listdir(self.cwd)), ["t-rank0.json.gz", "t-rank1.json.gz"])

    def test_merge_gives_one_file_that_reads_as_its_ranks(self):
        folder = self.traces(one_step(0), one_step(1, 1_751_410_836_000_500))
        result = self.export(folder, "--merge", "-o", "job.json.gz")
        self.assertEqual(result.stdout, b"job.json.gz\n")
        self.assertEqual(result.stderr, b"2 ranks, on one clock\n")
        self.assertEqual(os.listdir(self.cwd), ["job.json.gz"])
        kernels = [event for event in self.load("job.json.gz")["traceEvents"] if event.get("cat") == "kernel"]
        self.assertEqual(len({event["pid"] for event in kernels}), 2)
        self.assertEqual(len({event["args"]["correlation"] for event in kernels}), 2)
        self.assertEqual([event["ts"] for event in kernels], [9, 509])
        alone, merged = self.report(folder), self.report("job.json.gz")
        for rank in alone["ranks"] + merged["ranks"]:
            del rank["path"]
        self.assertEqual(alone["ranks"], merged["ranks"])
        self.assertEqual([rank["rank"] for rank in merged["ranks"]], [0, 1])

    def test_merging_a_merged_file_gives_the_same_file(self):
        self.export(self.traces(one_step(0), one_step(1)), "--merge", "-o", "a.json")
        self.export("a.json", "--merge", "-o", "b.json")
        self.export("b.json", "--merge", "-o", "c.json")
        with open(self.path("b.json"), "rb") as b, open(self.path("c.json"), "rb") as c:
            self.assertEqual(b.read(), c.read())

    def test_one_rank_of_a_merged_file(self):
        self.export(self.traces(one_step(0), one_step(1)), "--merge", "-o", "job.json")
        self.export("job.json", "--rank", "1", "-o", "one.json")
        events = self.load("one.json")["traceEvents"]
        self.assertEqual({event["pid"] for event in events}, {0, 100})
        self.assertEqual(self.load("one.json")["distributedInfo"]["rank"], 1)

    def test_merge_says_when_ranks_have_no_common_clock(self):
        result = self.export(self.traces(one_step(0, 5), one_step(1)), "--merge", "-o", "job.json")
        self.assertIn(b"2 ranks, not aligned, each starts at 0: rank 0 has no absolute time", result.stderr)
        kinds = {item["kind"] for item in self.report("job.json")["quality"]}
        self.assertIn("ranks_not_aligned", kinds)

    def test_merge_names_the_files_that_it_leaves_out(self):
        folder = self.traces(one_step(0), one_step(1))
        with open(os.path.join(folder, "settings.json"), "w", encoding="ascii") as file:
            file.write("{}")
        result = self.export(folder, "--merge", "-o", "job.json")
        self.assertIn(b"left out: ", result.stderr)
        self.assertIn(b"settings.json", result.stderr)

    def test_wrong_usage_is_2_and_nothing_is_written(self):
        folder = self.traces(one_step(0), one_step(1))
        for arguments in ((folder,), (folder, "-o", "a.json", "--merge", "--rank", "1"),
                          (folder, "-o", "a.json", "--rank", "7")):
            self.export(*arguments, code=2)
        self.assertEqual(os.listdir(self.cwd), [])

    def test_what_cannot_be_read_is_4(self):
        broken = os.path.join(self.folder, "broken.json")
        with open(broken, "w", encoding="ascii") as file:
            file.write("{}")
        for path in (broken, os.path.join(self.folder, "absent"), self.cwd):
            for flags in ((), ("--merge",)):
                result = self.export(path, "-o", "a.json", *flags, code=4)
                self.assertIn(os.path.basename(path).encode(), result.stderr)
        self.assertEqual(os.listdir(self.cwd), [])

    def test_what_cannot_be_written_is_74_and_an_unknown_ending_2(self):
        folder = self.traces(one_step(0), one_step(1))
        with open(self.path("there.json"), "wb"):
            pass
        for name, code in (("there.json", 74), ("no/such/folder.json", 74), ("a.unknown", 2)):
            self.export(folder, "--merge", "-o", name, code=code)
            self.export(folder, "--rank", "1", "-o", name, code=code)
        self.export(folder, "--merge", "--force", "-o", "there.json")
        self.assertEqual(os.listdir(self.cwd), ["there.json"])

    def test_help_shows_merge(self):
        text = self.trainprof("help", "export").stdout.decode()
        self.assertIn("--merge", text)
        self.assertIn("All ranks in one file", text)


if __name__ == "__main__":
    harness.main()
