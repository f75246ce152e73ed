#!/usr/bin/env python3
"""Fails when a test was skipped that this machine could have run.

usage: check_skips.py CTEST_JUNIT_XML CORPUS_FOLDER

A skip must give a reason, and the reason must hold on this machine: see EXPECTED. Exit status: 0
every skip was expected, 1 one was not (or nothing ran), 2 usage or unreadable file.
"""
import functools
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def expected(corpus):
    """(pattern of the reason that the test printed, whether that reason holds here, or how to know)."""
    return [
        (re.compile(r"\bcorpus\b", re.IGNORECASE), not os.path.isdir(corpus)),
        (re.compile(r"\bGPU\b|\bCUDA device\b|\bNVIDIA driver\b"), not glob.glob("/dev/nvidia[0-9]*")),
        (re.compile(r"\bneeds root\b"), not is_administrator()),
        (re.compile(r"\bHolisticTraceAnalysis\b"), importlib.util.find_spec("hta") is None
         and not os.path.isdir(os.path.join(ROOT, ".venv-hta"))),
        (re.compile(r"\bhas no PyTorch\b"), importlib.util.find_spec("torch") is None
         and not os.path.isdir(os.path.join(ROOT, ".venv"))),
        # 139 MB, of which CI installs none.
        (re.compile(r"\bnbconvert\b"), "TRAINPROF_TEST_JUPYTER" not in os.environ),
        (re.compile(r"\bPyPI\b"), lambda: not reaches_pypi()),
        (re.compile(r"\bChromium\b"), not (shutil.which("chromium") or shutil.which("google-chrome"))),
        (re.compile(r"\bXvfb\b"), not (shutil.which("Xvfb") and shutil.which("xdotool"))),
        (re.compile(r"\bnot as root\b|\broot may\b"), os.geteuid() == 0),
    ]


@functools.lru_cache
def reaches_pypi():
    """Whether pip finds packages here."""
    with tempfile.TemporaryDirectory() as folder:
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary",
                    ":all:", "--retries", "1", "--dest", folder, "wheel"]
        try:
            return subprocess.run(download, capture_output=True, timeout=30).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def is_administrator():
    """Whether this process may mount file systems; root in a container may not."""
    cap_sys_admin = 1 << 21
    with open("/proc/self/status", encoding="ascii") as status:
        effective = re.search(r"^CapEff:\s*([0-9a-f]+)", status.read(), re.MULTILINE)
    return bool(effective and int(effective.group(1), 16) & cap_sys_admin)


def reason_of(case):
    """What the test said: the lines after googletest's 'Skipped', or after our 'Skipped:'."""
    output = case.findtext("system-out") or ""
    match = re.search(r"(?:: Skipped\n|^Skipped: )(.*?)(?:\n\[  SKIPPED \]|\n\n|\Z)", output,
                      re.DOTALL | re.MULTILINE)
    return match.group(1).strip() if match else ""


def was_skipped(case):
    return case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None


def unexpected_skips(cases, corpus):
    for case in cases:
        if not was_skipped(case):
            continue
        reason = reason_of(case)
        if not any(pattern.search(reason) and (holds() if callable(holds) else holds)
                   for pattern, holds in expected(corpus)):
            yield case.get("name"), reason


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        cases = list(ElementTree.parse(arguments[0]).iter("testcase"))
    except (OSError, ElementTree.ParseError) as error:
        print(f"check_skips: {arguments[0]}: {error}; run ctest first", file=sys.stderr)
        return 2
    if not cases:
        print(f"check_skips: {arguments[0]} lists no test", file=sys.stderr)
        return 1
    unexpected = list(unexpected_skips(cases, arguments[1]))
    for name, reason in unexpected:
        print(f"unexpected skip: {name}: {reason or 'gave no reason'}")
    skipped = sum(map(was_skipped, cases))
    print(f"skips: {skipped} of {len(cases)} tests, {len(unexpected)} unexpected")
    return 1 if unexpected else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
