"""The gate of `trainprof check` as an assertion, for teams whose gate is a test."""
from __future__ import annotations

import os
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

Limit = Union[int, float, str]
_EXIT_FAILED, _EXIT_USAGE, _EXIT_INCONCLUSIVE = 1, 2, 3


def assert_budget(run: Union[str, "os.PathLike[str]", Sequence[str]], *, fail_on: Optional[str] = None,
                  config: Optional[str] = None, baseline: Optional[str] = None, allow_inconclusive: bool = False,
                  **budgets: Union[Limit, Mapping[str, Limit]]) -> Dict[str, Any]:
    """Fails, as `assert` does, where a run exceeds its budgets; the message says by how much, and what costs most.

        def test_a_step_is_fast_enough():
            trainprof.assert_budget(["python", "train.py", "--steps", "100"], step_time_ms=210, input_wait="5%")

    run: a recording, a trace of torch.profiler or a folder of ranks; or a command, which is recorded in a folder that is
    taken away again. budgets: names and limits of `.trainprof.toml`, each a number, "5%" of the step, "10 GiB", or all
    its keys: step_time_ms={"stat": "p95", "max": 240, "max-regression": "3%"}. They stand beside those of the policy
    (config, or .trainprof.toml here or above) and instead of those of the same name. Findings then fail nothing, unless
    fail_on ("error", "warning", "note") lets those of that severity; without budgets all is as the policy says.

    What cannot be measured, and a recording that lost records, fails as well, unless allow_inconclusive.
    Returns the report, docs/report.schema.json. Raises AssertionError where the gate fails; ValueError for a budget that
    does not exist or a mistake in the policy; RuntimeError where the command fails (its output is shown) or the run
    cannot be read.
    """
    __tracebackhide__ = True  # pytest shows the caller's line
    import tempfile

    with tempfile.TemporaryDirectory(prefix="trainprof-budget-") as folder:
        path: Union[str, "os.PathLike[str]"]
        if isinstance(run, (str, os.PathLike)):
            path = run
        else:
            path = os.path.join(folder, "recording")
            recorded = _program(["run", "--strict", "-o", path, "--", *run])
            if recorded.returncode != 0:
                raise RuntimeError("%s: exit code %d\n%s" % (" ".join(run), recorded.returncode,
                                                             recorded.stdout + recorded.stderr))
        return _judged(path, os.path.join(folder, "report.json"),
                       _flags(budgets, fail_on, config, baseline, allow_inconclusive))


def _flags(budgets: Mapping[str, Union[Limit, Mapping[str, Limit]]], fail_on: Optional[str], config: Optional[str],
           baseline: Optional[str], allow_inconclusive: bool) -> List[str]:
    flags = []
    for name, limits in budgets.items():
        for key, limit in (limits.items() if isinstance(limits, Mapping) else [("", limits)]):
            flags.append("--budget=%s%s=%s" % (name, "." + key.replace("_", "-") if key else "", limit))
    if fail_on is None and budgets:
        fail_on = "never"
    for flag, value in (("--fail-on", fail_on), ("--config", config), ("--baseline", baseline)):
        if value is not None:
            flags.append("%s=%s" % (flag, value))
    if allow_inconclusive:
        flags.append("--allow-inconclusive")
    return flags


def _judged(path: Union[str, "os.PathLike[str]"], report: str, flags: List[str]) -> Dict[str, Any]:
    import json

    __tracebackhide__ = True
    checked = _program(["check", os.fspath(path), "--format=json=" + report, *flags])
    said = (checked.stdout + checked.stderr).strip()
    if checked.returncode in (_EXIT_FAILED, _EXIT_INCONCLUSIVE):
        raise AssertionError(said)
    if checked.returncode == _EXIT_USAGE:
        raise ValueError(said)
    if checked.returncode != 0:
        raise RuntimeError(said)
    with open(report, encoding="utf-8") as file:
        result: Dict[str, Any] = json.load(file)
    return result


def _program(arguments: List[str]) -> Any:
    import shutil
    import subprocess

    from trainprof import __main__

    path = __main__.find() or shutil.which("trainprof")
    if path is None:
        raise RuntimeError("the program trainprof is neither beside this package nor on PATH")
    return subprocess.run([path, *arguments], capture_output=True, text=True, errors="replace", check=False)
