"""A folder of traces is a job only where its files say so; else the user is asked to name one."""
import json
import os

import harness
from harness import TrainprofTest
from traces import steps


class SeparateTraces(TrainprofTest):
    def make_traces(self, **files):
        os.mkdir(self.path("traces"))
        for name, content in files.items():
            with open(self.path(f"traces/{name}"), "w", encoding="utf-8") as file:
                json.dump(content, file)

    def check_asks(self, *names):
        for command, flags in (("report", []), ("analyze", []), ("check", []),
                               ("export", ["-o", "out.json"]),
                               ("export", ["-o", "out.json", "--merge"]),
                               ("export", ["-o", "out.json", "--rank", "0"])):
            result = self.trainprof(command, "traces", *flags)
            said = result.stderr.decode()
            self.assertEqual((result.returncode, result.stdout), (2, b""), said)
            for name in names:
                self.assertRegex(said, rf"(?m)^  traces/{name}: ")
            self.assertTrue(said.endswith("Name one of them\n"), said)
            self.assertFalse(os.path.exists(self.path("out.json")))

    def test_two_windows_of_one_process(self):
        self.make_traces(**{"host_4711.1000.pt.trace.json": steps(), "host_4711.2000.pt.trace.json": steps()})
        self.check_asks(r"host_4711\.1000\.pt\.trace\.json", r"host_4711\.2000\.pt\.trace\.json")

    def test_fifteen_experiments(self):
        self.make_traces(**{f"lr{i}.json": steps() for i in range(15)})
        self.check_asks(*(f"lr{i}.json" for i in range(15)))

    def test_two_that_say_the_same_rank(self):
        self.make_traces(**{"a.json": steps(0), "b.json": steps(1), "c.json": steps(0)})
        self.check_asks("a.json", "b.json", "c.json")

    def test_ranks_by_their_own_word_and_by_their_names(self):
        self.make_traces(**{"a.json": steps(4), "b.json": steps(2)})
        self.check_ranks({2: "traces/b.json", 4: "traces/a.json"})
        os.rename(self.path("traces"), self.path("before"))
        self.make_traces(**{"rank7.json": steps(), "rank1.json": steps()})
        self.check_ranks({1: "traces/rank1.json", 7: "traces/rank7.json"})

    def check_ranks(self, files):
        result = self.trainprof("report", "traces", "--format", "json", "--format", "text=text")
        self.assertEqual(result.returncode, 0, result.stderr)
        ranks = json.loads(result.stdout)["ranks"]
        self.assertEqual({rank["rank"]: rank["path"] for rank in ranks}, files)
        self.assertTrue(all(rank["rank_known"] for rank in ranks))
        text = self.read("text").decode()
        for rank, file in files.items():
            self.assertRegex(text, rf"rank +{rank} .*\({os.path.basename(file)}\)")

    def test_a_single_trace_has_the_rank_of_its_name(self):
        self.make_traces(**{"trace-rank1.json": steps()})
        result = self.trainprof("check", "traces")
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertIn(b"of 2 ranks these were not judged", result.stdout)

    def test_a_single_trace_among_other_files_is_read(self):
        self.make_traces(**{"a.json": steps(), "settings.json": {"lr": 1}})
        result = self.trainprof("report", "traces", "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        ranks = json.loads(result.stdout)["ranks"]
        self.assertEqual([(rank["rank"], rank["rank_known"]) for rank in ranks], [(0, False)])


if __name__ == "__main__":
    harness.main()
