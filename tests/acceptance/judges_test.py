#!/usr/bin/env python3
"""What the acceptance run concludes from its figures: a difference is seen, noise is left open."""
import gzip
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts" / "acceptance"))
import checks  # noqa: E402  # the folder of the script comes first
import first  # noqa: E402
import measures  # noqa: E402
import programs  # noqa: E402
import runs  # noqa: E402
import slots  # noqa: E402
import traces  # noqa: E402
from table import FAIL, OPEN, PASS, Table  # noqa: E402


def kernel(name, duration, grid=(1, 1, 1)):
    args = {"grid": list(grid), "block": [128, 1, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "ts": 1, "dur": duration, "args": args}


def copy(name, size):
    return {"ph": "X", "cat": "gpu_memcpy", "name": name, "ts": 1, "dur": 1, "args": {"bytes": size}}


def work_of(events):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json.gz"
        with gzip.open(path, "wt") as file:
            json.dump({"traceEvents": events}, file)
        return traces.device_work(path)


def verdicts(expected, ours):
    table = Table()
    checks.compare(table, "program", work_of(expected), work_of(ours))
    return {row["check"]: row["verdict"] for row in table.rows}


class Measures(unittest.TestCase):
    def test_the_interval_is_students(self):
        interval = measures.mean_of([1.0, 2.0, 3.0])
        self.assertEqual(interval.mean, 2.0)
        self.assertAlmostEqual(interval.half, 4.30 / math.sqrt(3))

    def test_only_a_clear_interval_is_judged(self):
        table = Table()
        for values in ([0.1, 0.2, 0.3], [5.0, 5.1, 5.2], [0.0, 1.0, 2.0]):
            table.judge_at_most("overhead", "program", measures.mean_of(values), 1, "%", "at most 1 %")
        self.assertEqual([row["verdict"] for row in table.rows], [PASS, FAIL, OPEN])

    def test_pairs_are_relative_to_their_own_plain_run(self):
        interval = measures.relative_percent([11.0, 22.0], [10.0, 20.0])
        self.assertAlmostEqual(interval.mean, 10.0)
        self.assertAlmostEqual(interval.half, 0.0)


class Compare(unittest.TestCase):
    base = [kernel("a(int)", 10.0), kernel("a(int)", 12.0), kernel("b", 3.0, (2, 1, 1)), copy("HtoD", 64)]

    def test_equal_work_passes_whatever_the_demangler(self):
        ours = [dict(event, name=event["name"].replace("(", " ( ")) for event in self.base]
        self.assertEqual(set(verdicts(self.base, ours).values()), {PASS})

    def test_a_missing_kernel_is_seen(self):
        self.assertEqual(verdicts(self.base, self.base[1:])["kernels by shape"], FAIL)

    def test_another_grid_is_seen(self):
        ours = self.base[:2] + [kernel("b", 3.0, (4, 1, 1)), self.base[3]]
        self.assertEqual(verdicts(self.base, ours)["kernels by shape"], FAIL)

    def test_a_median_that_differs_is_seen_and_a_microsecond_is_not(self):
        slower = [kernel("a(int)", 14.0), kernel("a(int)", 13.0)] + self.base[2:]
        self.assertEqual(verdicts(self.base, slower)["median durations"], FAIL)
        nearly = self.base[:2] + [kernel("b", 3.9, (2, 1, 1)), self.base[3]]
        self.assertEqual(verdicts(self.base, nearly)["median durations"], PASS)

    def test_other_bytes_are_seen(self):
        self.assertEqual(verdicts(self.base, self.base[:3] + [copy("HtoD", 65)])["copies and bytes"], FAIL)

    def test_nothing_is_equal_to_nothing_only_as_a_failure(self):
        self.assertEqual(verdicts([], [])["kernels by shape"], FAIL)


    def test_kernels_that_a_library_chooses_count_as_a_family(self):
        other = [kernel("ampere_sgemm_64x64_nn", 9.0, (4, 1, 1))] + self.base
        chosen = [kernel("ampere_sgemm_128x64_nn", 9.0, (2, 1, 1))] + self.base
        self.assertEqual(verdicts(other, chosen)["kernels by shape"], PASS)
        self.assertEqual(verdicts(other, chosen)["kernels of libraries"], PASS)
        self.assertEqual(verdicts(other, chosen + chosen[:1])["kernels of libraries"], FAIL)
        self.assertEqual(verdicts(other, self.base)["kernels of libraries"], FAIL)
        self.assertEqual(verdicts(other[:1], chosen[:1])["kernels by shape"], PASS)


class Exported:
    """A runner whose recordings hold these events."""

    def __init__(self, folder, events, lost=0):
        self.folder, self.path = folder, folder / "trace.json"
        self.quality = {"launches_without_kernel": lost} if lost else {}
        self.path.write_text(json.dumps({"traceEvents": events}))
        self.commands = []

    def recorded(self, program):
        self.commands.append(program.command)
        place = self.folder / "recording"
        place.mkdir()
        return None, place

    def export(self, _):
        return self.path

    def lost(self, _):
        return self.quality


class First(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def verdict_of_longest(self, events, pause_ms=None):
        table, runner = Table(), Exported(self.folder, events)
        first.longest(table, programs.Program("p", ("run", "it")), runner, 2, pause_ms)
        self.assertEqual(len(runner.commands), 2)
        return table.rows[-1]["verdict"], runner.commands[0]

    def test_a_kernel_that_lasts_as_long_as_a_pause_is_seen_and_so_is_none_at_all(self):
        self.assertEqual(self.verdict_of_longest([kernel("a", 10.0)])[0], PASS)
        self.assertEqual(self.verdict_of_longest([kernel("a", 10.0), kernel("a", 300e6)])[0], FAIL)
        self.assertEqual(self.verdict_of_longest([])[0], FAIL)

    def test_what_is_lost_at_a_windows_end_is_seen(self):
        for lost, verdict in ((0, PASS), (3, FAIL)):
            table = Table()
            with tempfile.TemporaryDirectory() as folder:
                runner = Exported(pathlib.Path(folder), [kernel("a", 10.0)], lost)
                first.longest(table, programs.Program("p", ("run", "it")), runner, 2)
            self.assertEqual(table.rows[-2]["verdict"], verdict)

    def test_a_shorter_pause_reaches_the_program(self):
        _, command = self.verdict_of_longest([kernel("a", 10.0)], pause_ms=7)
        self.assertEqual(command, ("env", "TRAINPROF_OPTIONS=pause_ms=7", "run", "it"))

    def test_the_kernels_word_on_a_crash_is_found(self):
        fault = "python3[2002]: segfault at 0 ip 00007f sp 00 error 4 in libcupti.so.13[7f+400]"
        trap = "traps: a[4] trap invalid opcode ip:1 sp:2 error:0"
        log = f"[ 1.0] usb\n[ 2.0] {fault}\n[ 3.0] {trap}\n[ 4.0] eth0 up\n"
        self.assertEqual(runs.FAULTS.findall(log), [f"[ 2.0] {fault}", f"[ 3.0] {trap}"])

    def test_pauses_are_timed_with_cupti_and_without(self):
        class Timed:
            """Steps of 10 ms, of 11 where CUPTI takes part."""

            def plain(self, _):
                return types.SimpleNamespace(step_ms=10.0)

            def recorded(self, program):
                without = "TRAINPROF_OPTIONS=gpu=off" in program.command
                return types.SimpleNamespace(step_ms=10.0 if without else 11.0), None

        table = Table()
        first.pause(table, programs.Program("p", ("run", "it")), Timed(), 5, 900, 1.0)
        judged = [(row["check"], row["verdict"]) for row in table.rows if row["verdict"] != "fact"]
        self.assertEqual(judged, [("step overhead in pauses", FAIL), ("step overhead in pauses, without CUPTI", PASS)])
        self.assertIn(("step, plain", "10.00, 10.00, 10.00, 10.00, 10.00 ms"),
                      [(row["check"], row["figure"]) for row in table.rows])

    def test_slots_are_read_up_to_what_is_no_record(self):
        sizes = [0] * slots.KINDS
        sizes[5], sizes[10] = 48, 64
        slot_bytes = 1 << 18
        head = slots.HEADER.pack(slots.MAGIC, slot_bytes, 0, 0, 0, 2, 0) + struct.pack(f"<{slots.KINDS}I", *sizes)
        head += bytes(16 * slots.KEPT_NAMES) + slots.SLOT.pack(0, 0, 0, 0, 0, 0) + slots.SLOT.pack(1, 0, 0, 0, 9, 0)
        call = struct.pack("<IIQQ", 5, 1, 100, 200).ljust(48, b"\0")
        done = struct.pack("<IIIIQQ", 10, 0, 0, 0, 300, 400).ljust(64, b"\0")
        under_way = struct.pack("<IIIIQQ", 10, 0, 0, 0, 300, 0).ljust(64, b"\0")
        marked = struct.pack("<IIIIQQ", slots.INCOMPLETE | 10, 0, 0, 0, 0, 0).ljust(64, b"\0")
        path = self.folder / "pid-1.slots"
        records = call + done + under_way + marked + call + bytes(64) + call  # the last lies behind a hole
        path.write_bytes(head.ljust(2 * slot_bytes, b"\0") + records.ljust(slot_bytes, b"\0"))
        self.assertEqual(list(slots.describe(path)),
                         ["slot 1 held: kind 5: 2 with times, 0 without; kind 10: 1 with times, 2 without"])
        path.rename(self.folder / "trainprof-2.tps.slots")
        elsewhere = self.folder / "2.tps.slots"
        elsewhere.write_bytes(slots.ELSEWHERE.pack(slots.ELSEWHERE_MAGIC, str(self.folder).encode()))
        self.assertEqual(len(list(slots.describe(elsewhere))), 1)
        path.write_bytes(bytes(slot_bytes))
        with self.assertRaises(ValueError):
            list(slots.describe(path))

    def test_what_does_not_end_in_time_is_killed_with_all_that_it_started(self):
        pids = self.folder / "pids"
        script = f"sh -c 'echo $$ >> {pids}; sleep 60; :' & echo $$ >> {pids}; wait"
        runner = runs.Runner("trainprof", self.folder, {"PATH": "/usr/bin:/bin"})
        self.assertIsNone(runner.timed(("sh", "-c", script), {}, 1).exit_code)
        killed = [int(pid) for pid in pids.read_text().split()]
        self.assertEqual(len(killed), 2)
        states = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(map(str, killed))], capture_output=True, text=True,
                                check=False).stdout.split()
        self.assertEqual([state for state in states if not state.startswith("Z")], [])

    def test_what_ends_in_time_has_its_exit_code_and_its_variables(self):
        runner = runs.Runner("trainprof", self.folder, {"PATH": "/usr/bin:/bin"})
        outcome = runner.timed(("sh", "-c", "echo $A; exit 3"), {"A": "b"}, 10)
        self.assertEqual((outcome.exit_code, outcome.output), (3, "b\n"))


class Programs(unittest.TestCase):
    def test_the_lines_of_all_habits_are_in_their_sources(self):
        folder = pathlib.Path("/nowhere")
        for habit in programs.virtual_programs(folder, 10)[1]:
            if habit.line:
                self.assertGreater(programs.line_number(habit.source, habit.line), 1)
        for text in ("loss.item<double>()", "torch::randn(batch.images.sizes(), made_on)"):
            self.assertGreater(programs.line_number(programs.TRAINING, text), 1)

    def test_on_a_gpu_the_python_twin_shows_its_line_too(self):
        everything, habits = programs.gpu_programs(pathlib.Path("/nowhere"), pathlib.Path("/nowhere"), 10)
        lines = programs.item_lines("gpu", everything, habits)
        self.assertEqual([program.name for program, _, _ in lines], ["train.py"])
        self.assertGreater(programs.line_number(*lines[0][1:]), 1)

    def test_what_a_program_prints_is_read(self):
        outcome = runs.Outcome(0, "step 1 loss 2.5 1.0 ms/step\nmean of 9 steps after warm-up: 7.50 ms/step, of it\n"
                                  "device did 3 kernels, 2 copies, 1 memsets\n", "")
        self.assertEqual((outcome.step_ms, outcome.losses(), outcome.truth), (7.5, ["2.5"], (3, 2, 1)))
        self.assertIsNone(runs.Outcome(0, "", "").step_ms)


if __name__ == "__main__":
    unittest.main()
