"""Compares what trainprof says of scenarios with what was measured. Pure: made-up runs and reports are its tests.

The gain of a habit is measured: the mean step with all habits less the mean step with all but this one, of runs
that nobody watched. 2 % of the step (REAL) is what a loss must be to be looked for, and what a claim must be to be wrong.
"""
import math
import statistics

from kinds import KINDS, SYMPTOMS, rules_beside

REAL = 0.02
# A loop without a habit whose device stands idle for more is kept from working by the machine: what is said of
# that may well be true.
STARVED = 0.2


def mean_ms(truths):
    return statistics.fmean(t["mean_ms"] for t in truths)


def noise_ms(*several_truths):
    """Two standard errors of the sum or difference of the means; 0 of one run, which knows nothing of it."""
    variances = [statistics.variance([t["mean_ms"] for t in truths]) / len(truths)
                 for truths in several_truths if len(truths) > 1]
    return 2 * math.sqrt(sum(variances))


def is_starved(truth):
    """Whether a loop's device stood idle, seen by its kernels' time: of several streams or devices that is no less."""
    return 1 - truth["kernel_ms"] / truth["mean_ms"] > STARVED


def claim(finding, step_ms):
    """The share of the step that a finding promises, as expected: beside those before it."""
    gain = finding["gain_ms_per_step"]
    return gain.get("further", gain.get("expected", gain["high"])) / step_ms


def is_alarm(finding, step_ms):
    """Whether it says that something should be changed: a note that expects less than 2 % of the step does not."""
    return finding["severity"] != "note" or claim(finding, step_ms) > REAL


def reported_step_ms(report):
    """The mean step of the steps with GPU detail."""
    rank = report["ranks"][0]
    return rank.get("device_steps", {}).get("mean_ms") or rank["steps"]["mean_ms"]


def identity_error(report):
    """The replay's error without any change, a share of the step; None where the report has none."""
    found = []

    def search(value):
        if isinstance(value, dict):
            for key, inner in value.items():
                if key.startswith("identity_error") and isinstance(inner, (int, float)):
                    found.append(abs(inner))
                search(inner)
        elif isinstance(value, list):
            for inner in value:
                search(inner)

    search(report["ranks"])
    return max(found) if found else None


def largest_idle_class(report):
    """The class of what the first device lost most with; None where it lost nothing."""
    for device in report["ranks"][0]["devices"]:
        lost = [c for c in device["account"] if c["class"] != "compute" and c["total_ns"] > 0]
        return max(lost, key=lambda c: c["total_ns"])["class"] if lost else None
    return None


def site_matches(finding, habit):
    """Whether one of its places is the habit's line, or the range around it."""
    for where in finding["where"]:
        file, line = where.get("file"), where.get("line")
        if file and habit["file"] and line is not None and habit["file"].endswith(file.split("/")[-1]):
            if habit["lines"][0] <= line <= habit["lines"][1]:
                return True
        if habit["range"] and habit["range"] in (where.get("function"), where.get("op")):
            return True
    return False


def judge_habit(habit, runs, findings):
    """A habit that is on: {"name", "kind", "gain_ms", "loss", "found", "site", "interval", "covered", ...}."""
    others = [h["name"] for h in runs["plain"]["on"][0]["habits"] if h["name"] != habit["name"]]
    without = runs["plain"][",".join(others) or "off"]
    step_ms = mean_ms(runs["plain"]["on"])
    gain = step_ms - mean_ms(without)
    result = {"name": habit["name"], "kind": habit["kind"], "gain_ms": gain, "loss": gain / step_ms,
              "noise_ms": noise_ms(without, runs["plain"]["on"]),
              "found": False, "site": None, "interval": None, "covered": None, "near": None, "expected_ms": None}
    for finding in findings:
        if finding["rule"] not in KINDS[habit["kind"]].rules:
            continue
        low, high = (finding["gain_ms_per_step"][k] for k in ("low", "high"))
        result.update(found=True, interval=[low, high], rule=finding["rule"], confidence=finding["confidence"],
                      covered=low <= max(gain, 0) <= high,
                      near=low <= max(gain, 0) + result["noise_ms"] and max(gain, 0) - result["noise_ms"] <= high,
                      expected_ms=finding["gain_ms_per_step"].get("expected"))
        if habit["file"] or habit["range"]:
            result["site"] = site_matches(finding, habit)
        break
    return result


def tells_of_others(finding, truth):
    """Whether it says that other programs took the processor from one that did not run alone: true, and no habit's."""
    return not truth["quiet"] and finding["title"].startswith("Preempted host")


def false_alarms(habits, findings, step_ms):
    """Rules that no habit with a real gain accounts for. A symptom is one where nothing is lost."""
    allowed = set()
    for habit in habits:
        if habit["loss"] > REAL:
            allowed |= set(KINDS[habit["kind"]].rules) | rules_beside(habit["kind"]) | set(SYMPTOMS)
    return [f["rule"] for f in findings if is_alarm(f, step_ms) and f["rule"] not in allowed]


def judge_run(runs, state, report):
    """One recorded run of a scenario. state: "on" or "off"."""
    truth = runs["watched"][state]["truth"]
    step_ms = mean_ms(runs["plain"][state])
    findings = report["findings"]
    habits = [judge_habit(h, runs, findings) for h in truth["habits"]] if state == "on" else []
    real = sorted((h for h in habits if h["loss"] > REAL), key=lambda h: -h["loss"])
    is_preempted = any(h["kind"] == "preempted" for h in real)  # by a thread of its own
    own = [f for f in findings if is_preempted or not tells_of_others(f, truth)]
    causes = [f["rule"] for f in own if f["rule"] not in SYMPTOMS]
    # Of two habits worth about the same either may come first.
    leaders = [h for h in real if h["loss"] > 0.8 * real[0]["loss"]]
    reported = reported_step_ms(report)
    starved = not real and is_starved(truth)
    right = [f["rule"] for f in findings
             if is_alarm(f, step_ms) and any(f["rule"] in KINDS[h["kind"]].rules for h in real)]
    return {
        "scenario": runs["scenario"], "seed": runs["seed"], "state": state, "step_ms": step_ms,
        "noise_ms": noise_ms(runs["plain"][state]), "starved": starved, "overhead": truth["mean_ms"] / step_ms - 1,
        # Where the first steps are unlike the others their mean is not that of all.
        "step_error": reported / truth["mean_ms"] - 1 if reported and truth["steady"] else None,
        "reported_ms": reported, "identity_error": identity_error(report), "habits": habits,
        "class": largest_idle_class(report),
        "class_right": largest_idle_class(report) in KINDS[real[0]["kind"]].classes
        if real and KINDS[real[0]["kind"]].classes else None,
        "first_right": bool(causes) and any(causes[0] in KINDS[h["kind"]].rules for h in leaders) if real else None,
        "kernel_ms": truth["kernel_ms"],
        # What all habits are worth together: gains of one do not add up.
        "joint_gain_ms": step_ms - mean_ms(runs["plain"]["off"]),
        "found": [[f["rule"], f["severity"], f["gain_ms_per_step"]["low"], f["gain_ms_per_step"]["high"]]
                  for f in findings],
        "right": right, "false": [] if starved else false_alarms(habits, own, step_ms),
        "is_silent": not any(is_alarm(f, step_ms) for f in own),
        "epoch": truth["epoch"], "logger": truth["logger"], "quiet": truth["quiet"],
        "check": report.get("check", {}).get("result"), "verdict": report["verdict"],
    }


def share(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


def quantile(values, q):
    values = sorted(v for v in values if v is not None)
    return values[min(len(values) - 1, int(q * len(values)))] if values else None


def summarise(judged):
    """The figures that the gate asks about; None where there was nothing to judge."""
    real = [(run, h) for run in judged for h in run["habits"] if h["loss"] > REAL]
    claimed = [(run, h) for run in judged for h in run["habits"] if h["interval"]]
    true = sum(len(run["right"]) for run in judged)
    false = sum(len(run["false"]) for run in judged)
    # A state in which nothing is lost: no habit, or none that is worth anything here.
    fixed = [run for run in judged if not run["starved"] and not any(h["loss"] > REAL for h in run["habits"])]
    widths = [(h["interval"][1] - h["interval"][0]) / h["gain_ms"] for _, h in claimed if h["loss"] > REAL]
    expected = [abs(h["expected_ms"] - h["gain_ms"]) / run["step_ms"] for run, h in claimed
                if h["expected_ms"] is not None]
    errors = [abs(run["step_error"]) for run in judged if run["step_error"] is not None]
    return {
        "runs": len(judged), "scenarios": len({run["scenario"] for run in judged}),
        "real_losses": len(real), "recall": share([h["found"] for _, h in real]),
        "first": share([run["first_right"] for run in judged]),
        "precision": true / (true + false) if true + false else None,
        "right": true, "false": false,
        "fixed": len(fixed), "starved": sum(run["starved"] for run in judged), "silent": share([run["is_silent"] for run in fixed]),
        "intervals": len(claimed), "coverage": share([h["covered"] for _, h in claimed]),
        "coverage_quiet": share([h["covered"] for run, h in claimed if run["quiet"]]),
        "coverage_beside": share([h["covered"] for run, h in claimed if not run["quiet"]]),
        "coverage_with_noise": share([h["near"] for _, h in claimed]),
        "width": quantile(widths, 0.5), "site": share([h["site"] for _, h in real]),
        "class": share([run["class_right"] for run in judged]),
        "expected_error_p90": quantile(expected, 0.9), "expected_error": quantile(expected, 0.5),
        "step_error": quantile(errors, 0.5), "step_error_p90": quantile(errors, 0.9),
        "identity_error": quantile([run["identity_error"] for run in judged], 0.5),
        "identity_error_max": quantile([run["identity_error"] for run in judged], 1),
        "noise_p90": quantile([run["noise_ms"] / run["step_ms"] for run in judged], 0.9),
        "quiet": all(run["quiet"] for run in judged),
    }
