"""Where in the user's source a hook was reached: the stack as a text, as FORMAT.md has it for record 24."""
import os
import sys

from trainprof import _recorder

_MOST_FRAMES = 24  # of a stack
_MOST_BYTES = 4096  # of a recorded text
_MOST_KNOWN = 4096  # programs that make code as they go must not fill memory

_libraries = [os.path.dirname(os.path.abspath(__file__)) + os.sep]  # torch's folder, and ours
_of_library = {}  # id of a code object -> (the object, whether it is a library's)
_known = {}  # (id of a code object, instruction) -> (the object, handle of the stack from there on)


def passes_over(folder):
    _libraries.append(os.path.join(folder, ""))


def _is_library(code):
    known = _of_library.get(id(code))
    if known is None:
        if len(_of_library) >= _MOST_KNOWN:
            _of_library.clear()
        known = _of_library[id(code)] = (code, code.co_filename.startswith(tuple(_libraries)))
    return known[1]


def _text(frame):
    text = ""
    for _ in range(_MOST_FRAMES):
        if frame is None:
            break
        code = frame.f_code
        line = "%d %s %s" % (frame.f_lineno or 0, getattr(code, "co_qualname", code.co_name), code.co_filename)
        if len(text.encode("utf-8", "replace")) + len(line.encode("utf-8", "replace")) >= _MOST_BYTES:
            break
        if "\n" not in line:
            text += line + "\n"
        frame = frame.f_back
    return text


def caller():
    """The innermost frame outside of torch and of this package; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None and _is_library(frame.f_code):
        frame = frame.f_back
    return frame


def stack():
    """The handle of the stack from caller() on. What called that frame is looked at once for each of its
    instructions: a framework's loop has one caller."""
    frame = caller()
    if frame is None:
        return None
    code = frame.f_code
    key = (id(code), frame.f_lasti)
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[key] = (code, _recorder.text(_text(frame)))
    return known[1]
