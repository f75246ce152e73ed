"""Exceptions leave a wrapper of ours as if it were not there: the user reads the traceback that he would read without."""


def unseen(error):
    """Before a bare `raise`: takes our frames off the head of the traceback, to which callers add theirs as it passes.
    Python 3.10 raises on with a copy that cannot be reached: its tracebacks keep our frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") == __package__:
        trace = trace.tb_next
    BaseException.with_traceback(error, trace)  # whatever the exception's own class makes of attributes
