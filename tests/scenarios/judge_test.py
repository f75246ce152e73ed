#!/usr/bin/env python3
"""What judge.py makes of measurements and reports: a right answer scores, a wrong one does not, and noise is said."""
import unittest

import judge
import runs
import score


def truth(mean_ms, habits=(), steady=True):
    return {"mean_ms": mean_ms, "kernel_ms": 0.9 * mean_ms, "steady": steady, "epoch": False, "logger": False, "quiet": True,
            "habits": [{"name": name, "kind": kind, "on": True, "range": place, "file": "/x/loop.cpp",
                        "lines": [10, 15]} for name, kind, place in habits]}


def finding(rule, low, high, severity="warning", file=None, line=None, function="", op="", title="", **gain):
    return {"rule": rule, "severity": severity, "confidence": 1.0, "title": title, "gain_ms_per_step": {"low": low, "high": high, **gain},
            "where": [{"file": file, "line": line, "function": function, "op": op}]}


def report(findings, step_ms=3.0, lost=(), **rank):
    account = [{"class": "compute", "total_ns": 1}] + [{"class": c, "total_ns": ns} for c, ns in lost]
    return {"findings": findings, "verdict": "x", "check": {"result": "pass"},
            "ranks": [{"device_steps": {"mean_ms": step_ms}, "steps": {"mean_ms": step_ms},
                       "devices": [{"account": account}], **rank}]}


LOADER = ("inline", "loader", "data_wait")
ITEM = ("item", "read-back", "")


def of_loader(on=(3.0, 3.0), off=(2.0, 2.0)):
    return {"scenario": "s", "seed": 1,
            "plain": {"on": [truth(t, [LOADER]) for t in on], "off": [truth(t, [LOADER]) for t in off]},
            "watched": {"on": {"truth": truth(3.0, [LOADER])}, "off": {"truth": truth(2.0, [LOADER])}}}


def of_both():
    habits = [LOADER, ITEM]
    means = {"on": 4.0, "off": 2.0, "item": 2.5, "inline": 3.9}
    return {"scenario": "s", "seed": 1, "plain": {state: [truth(ms, habits)] for state, ms in means.items()},
            "watched": {"on": {"truth": truth(4.0, habits)}, "off": {"truth": truth(2.0, habits)}}}


class Runs(unittest.TestCase):
    def test_the_gain_is_that_of_runs_nobody_watched(self):
        run = judge.judge_run(of_loader(on=(3.0, 3.2)), "on", report([finding("input-bound", 0.9, 1.2)]))
        self.assertAlmostEqual(run["habits"][0]["gain_ms"], 1.1)
        self.assertAlmostEqual(run["habits"][0]["noise_ms"], 0.2)
        self.assertTrue(run["habits"][0]["covered"])
        self.assertTrue(run["first_right"])

    def test_of_two_habits_each_is_worth_what_goes_without_it_alone(self):
        run = judge.judge_run(of_both(), "on", report([finding("input-bound", 1, 2), finding("host-sync", 0.2, 0.3)]))
        self.assertEqual([round(h["gain_ms"], 6) for h in run["habits"]], [1.5, 0.1])
        self.assertEqual([h["covered"] for h in run["habits"]], [True, False])

    def test_an_interval_beside_the_gain_does_not_cover_it(self):
        for low, high in ((0.0, 0.99), (1.01, 2.0)):
            run = judge.judge_run(of_loader(), "on", report([finding("input-bound", low, high)]))
            self.assertFalse(run["habits"][0]["covered"])

    def test_of_quiet_runs_and_others_coverage_is_told_apart(self):
        quiet = judge.judge_run(of_loader(), "on", report([finding("input-bound", 0.5, 1.5)]))
        beside = judge.judge_run(of_loader(), "on", report([finding("input-bound", 1.01, 1.5)]))
        quiet["quiet"], beside["quiet"] = True, False
        figures = judge.summarise([quiet, beside, quiet])
        self.assertEqual((figures["coverage_quiet"], figures["coverage_beside"]), (1, 0))
        self.assertIsNone(judge.summarise([quiet])["coverage_beside"])

    def test_what_noise_may_explain_is_near(self):
        for high, near in ((0.79, False), (0.91, True)):
            run = judge.judge_run(of_loader(on=(3.0, 3.2)), "on", report([finding("input-bound", 0.5, high)]))
            self.assertEqual((run["habits"][0]["covered"], run["habits"][0]["near"]), (False, near))

    def test_where_the_machine_keeps_a_loop_from_working_nothing_is_false(self):
        starved = of_loader()
        starved["watched"]["off"]["truth"]["kernel_ms"] = 0.7 * 2.0
        alarm = report([finding("low-utilisation", 0, 1)], 2.0)
        run = judge.judge_run(starved, "off", alarm)
        self.assertEqual((run["starved"], run["false"]), (True, []))
        self.assertIsNone(judge.summarise([run])["silent"])
        self.assertEqual(judge.judge_run(of_loader(), "off", alarm)["false"], ["low-utilisation"])

    def test_a_gain_below_nothing_is_nothing(self):
        run = judge.judge_run(of_loader(on=(2.0,), off=(2.1,)), "on", report([finding("input-bound", 0, 0.01, "note")]))
        self.assertTrue(run["habits"][0]["covered"])

    def test_the_first_cause_must_be_the_worst_habit(self):
        right = [finding("low-utilisation", 0, 1), finding("input-bound", 1, 2), finding("host-sync", 0, 1)]
        self.assertTrue(judge.judge_run(of_both(), "on", report(right))["first_right"])
        wrong = [finding("host-sync", 0, 1), finding("input-bound", 1, 2)]
        self.assertFalse(judge.judge_run(of_both(), "on", report(wrong))["first_right"])
        self.assertFalse(judge.judge_run(of_both(), "on", report([]))["first_right"])

    def test_an_alarm_that_nothing_accounts_for_is_false(self):
        run = judge.judge_run(of_loader(), "on", report([finding("pageable-copy", 0, 1)]))
        self.assertEqual(run["false"], ["pageable-copy"])
        note = judge.judge_run(of_loader(), "on", report([finding("pageable-copy", 0, 0.01, "note")]))
        self.assertEqual(note["false"], [])

    def test_a_note_that_promises_much_is_an_alarm(self):
        run = judge.judge_run(of_loader(), "off", report([finding("host-sync", 0, 1, "note")], 2.0))
        self.assertFalse(run["is_silent"])
        self.assertEqual(run["false"], ["host-sync"])

    def test_a_symptom_is_false_where_nothing_is_lost(self):
        symptom = report([finding("low-utilisation", 0, 1)])
        self.assertEqual(judge.judge_run(of_loader(), "on", symptom)["false"], [])
        self.assertEqual(judge.judge_run(of_loader(), "off", symptom)["false"], ["low-utilisation"])

    def test_a_rule_beside_a_real_habit_is_neither_right_nor_wrong(self):
        run = judge.judge_run(of_both(), "on", report([finding("input-bound", 1, 2), finding("launch-bound", 0, 1)]))
        self.assertEqual((run["right"], run["false"]), (["input-bound"], []))

    def test_beside_other_programs_it_is_no_alarm_that_they_take_the_processor(self):
        said = report([finding("host-work", 0.0, 1.0, title="Preempted host: the GPU stands idle")])
        for quiet in (True, False):
            both = of_loader()
            both["watched"]["off"]["truth"]["quiet"] = quiet
            run = judge.judge_run(both, "off", said)
            self.assertEqual((run["is_silent"], run["false"]), (not quiet, ["host-work"] if quiet else []))
            other = judge.judge_run(both, "off", report([finding("host-work", 0.0, 1.0, title="Host work")]))
            self.assertEqual((other["is_silent"], other["false"]), (False, ["host-work"]))

    def test_beside_other_programs_a_thread_of_its_own_may_take_the_processor_too(self):
        said = report([finding("host-work", 1.0, 2.0, title="Preempted host: the GPU stands idle")])
        both = of_loader()
        both["watched"]["on"]["truth"]["quiet"] = False
        self.assertFalse(judge.judge_run(both, "on", said)["first_right"])
        for truth in (both["watched"]["on"]["truth"], *both["plain"]["on"]):
            truth["habits"][0]["kind"] = "preempted"
        self.assertTrue(judge.judge_run(both, "on", said)["first_right"])

    def test_the_step_is_compared_with_the_watched_run_itself(self):
        run = judge.judge_run(of_loader(), "on", report([], 1.5))
        self.assertAlmostEqual(run["step_error"], -0.5)
        unsteady = of_loader()
        unsteady["watched"]["on"]["truth"]["steady"] = False
        self.assertIsNone(judge.judge_run(unsteady, "on", report([], 1.5))["step_error"])

    def test_a_site_is_the_line_or_the_range(self):
        for where, right in (({"file": "loop.cpp", "line": 12}, True), ({"file": "loop.cpp", "line": 16}, False),
                             ({"file": "other.cpp", "line": 12}, False), ({"function": "data_wait"}, True),
                             ({"file": "other.cpp", "line": 12, "op": "data_wait"}, True)):
            run = judge.judge_run(of_loader(), "on", report([finding("input-bound", 0, 2, **where)]))
            self.assertEqual(run["habits"][0]["site"], right, where)

    def test_the_worst_class_is_compared(self):
        lost = (("idle_input_wait", 5), ("idle_unknown", 3))
        self.assertTrue(judge.judge_run(of_loader(), "on", report([], lost=lost))["class_right"])
        self.assertFalse(judge.judge_run(of_loader(), "on", report([], lost=lost[1:]))["class_right"])

    def test_the_worst_identity_error_is_kept(self):
        run = judge.judge_run(of_loader(), "on", report([], graph={"identity_error": -0.03}))
        self.assertEqual(run["identity_error"], 0.03)
        self.assertIsNone(judge.judge_run(of_loader(), "on", report([]))["identity_error"])


class Summaries(unittest.TestCase):
    def test_figures_are_shares_of_what_was_asked(self):
        judged = [judge.judge_run(of_loader(), "on", report([finding("input-bound", 0.5, 1.5, expected=1.1)])),
                  judge.judge_run(of_loader(), "on", report([finding("host-sync", 0.5, 1.5)])),
                  judge.judge_run(of_loader(), "off", report([], 2.0)),
                  judge.judge_run(of_loader(), "off", report([finding("host-sync", 0, 1)], 2.0))]
        summary = judge.summarise(judged)
        self.assertEqual((summary["recall"], summary["first"], summary["silent"], summary["coverage"]), (0.5, 0.5, 0.5, 1))
        self.assertAlmostEqual(summary["precision"], 1 / 3)
        self.assertAlmostEqual(summary["width"], 1)
        self.assertAlmostEqual(summary["expected_error"], 0.1 / 3)

    def test_what_was_not_judged_is_no_figure(self):
        summary = judge.summarise([judge.judge_run(of_loader(), "off", report([], 2.0))])
        self.assertIsNone(summary["recall"])
        self.assertIsNone(summary["coverage"])

    def test_a_limit_is_missed_by_too_little_too_much_and_nothing(self):
        options = score.parse(["--least", "recall=0.9", "--most", "width=0.3", "--least", "coverage=0.5"])
        misses = list(score.missed({"recall": 0.8, "width": 0.4, "coverage": None}, options))
        self.assertEqual(len(misses), 3)
        self.assertEqual(list(score.missed({"recall": 0.9, "width": 0.3, "coverage": 0.5}, options)), [])

    def test_all_lines_of_the_table_are_as_wide(self):
        judged = [judge.judge_run(of_both(), state, report([finding("input-bound", 1, 2)])) for state in ("on", "off")]
        self.assertEqual({len(row) for row in score.lines_of(judged)}, {11})


class States(unittest.TestCase):
    def test_of_several_habits_each_is_left_out_once(self):
        self.assertEqual(runs.states_of(truth(1)), ["off"])
        self.assertEqual(runs.states_of(truth(1, [LOADER])), ["on", "off"])
        self.assertEqual(runs.states_of(truth(1, [LOADER, ITEM])), ["on", "off", "item", "inline"])


if __name__ == "__main__":
    unittest.main()
