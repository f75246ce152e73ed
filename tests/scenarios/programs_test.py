#!/usr/bin/env python3
"""programs_test.py BUILD: every scenario runs, with its habits and without, and says what score.py must know."""
import os
import sys
import tempfile
import unittest

import runs
from kinds import KINDS

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 else os.environ.get("BUILD", "build/dev")
STEPS = 14


class Programs(unittest.TestCase):
    def setUp(self):
        self.machine = runs.Machine(BUILD, tempfile.gettempdir(), steps=STEPS)

    def test_there_are_enough(self):
        self.assertGreaterEqual(len(self.machine.scenarios()), 40)

    def test_each_runs_with_and_without_its_habits(self):
        for name in self.machine.scenarios():
            with self.subTest(name):
                on, off = (self.machine.plain(name, habit, 7) for habit in ("on", "off"))
                self.assertGreater(min(on["mean_ms"], off["mean_ms"]), 0)
                self.assertTrue(all(h["on"] for h in on["habits"]))
                self.assertFalse(any(h["on"] for h in off["habits"]))
                self.assertEqual([h["name"] for h in on["habits"]], [h["name"] for h in off["habits"]])
                self.assertEqual(not on["habits"], name.startswith("healthy_"))
                for habit in on["habits"]:
                    self.assertIn(habit["kind"], KINDS)
                # The same draws: the device computes the same, whatever the habit, unless that is the habit.
                self.assertAlmostEqual(on["kernel_ms"] / off["kernel_ms"], 1, delta=0.15)

    def test_each_habit_can_be_left_out_alone(self):
        names = [n for n in self.machine.scenarios() if len(self.machine.plain(n, "off", 7)["habits"]) > 1]
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            for state in runs.states_of(self.machine.plain(name, "off", 7))[2:]:
                on = [h["name"] for h in self.machine.plain(name, state, 7)["habits"] if h["on"]]
                self.assertEqual(on, state.split(","), name)

    def test_a_habit_points_to_its_call(self):
        calls = 0
        for name in self.machine.scenarios():
            for habit in self.machine.plain(name, "on", 7)["habits"]:
                if not habit["file"]:
                    continue
                with open(os.path.join(self.machine.build, habit["file"]), encoding="utf-8") as file:
                    lines = file.read().splitlines()[habit["lines"][0]:habit["lines"][1]]
                with self.subTest(f"{name} {habit['name']}"):
                    self.assertRegex("\n".join(lines), r"\bcuda[A-Z]|Order\(")
                calls += 1
        self.assertGreater(calls, 20)

    def test_an_unknown_scenario_is_refused(self):
        with self.assertRaisesRegex(RuntimeError, "no scenario"):
            self.machine.plain("nothing", "on", 1)


if __name__ == "__main__":
    unittest.main()
