"""Tells trainprof what it cannot see by itself. Everything here does nothing unless the program runs under
`trainprof run`, and nothing needs to be told: steps and phases of a torch program are found without it. `assert_budget`
alone is for tests: it records and judges a run.

    import trainprof

    for batch in my_own_pipeline():
        trainprof.annotate_batch(samples=len(batch))
        with trainprof.range("augment"):
            batch = augment(batch)
        ...
        trainprof.step()
"""
from __future__ import annotations

import threading
from types import TracebackType
from typing import Optional, Type

from trainprof import _recorder
from trainprof._budget import assert_budget

__all__ = ["annotate_batch", "assert_budget", "mark", "range", "step"]


if _recorder.recording:
    _recorder.read_stacks()


class _Steps(threading.local):
    begin = 0


_steps = _Steps()


def step() -> None:
    """A step ends here, and the next one begins. Called once in each round of the training loop, by one thread; the
    first call begins the first step. Where it is called, optimizers no longer say where steps end."""
    if not _recorder.recording:
        return
    _steps.begin = _recorder.user_range("step", _steps.begin) if _steps.begin else _recorder.clock()
    _recorder.step_begins()
    if _recorder.at_step_end is not None:
        _recorder.at_step_end()


class range:
    """A named stretch of time of this thread: `with trainprof.range("augment"): ...`"""

    __slots__ = ("name", "begin")

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> "range":
        self.begin = _recorder.clock()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], value: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        if _recorder.recording:
            _recorder.user_range(self.name, self.begin)


def mark(name: str) -> None:
    """A named moment of this thread."""
    if _recorder.recording:
        _recorder.mark(name, 0)


def annotate_batch(samples: int = 0, tokens: int = 0) -> None:
    """How much the batch holds that is trained on now; 0: not said."""
    if not _recorder.recording:
        return
    for name, count in (("samples", samples), ("tokens", tokens)):
        if count > 0:
            _recorder.mark(name, count)
