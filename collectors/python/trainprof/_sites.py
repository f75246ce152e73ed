"""Where in the user's source a hook was reached. The hooks see it themselves (collectors/python/call_site.h), but for
Pythons whose stacks are not known there: for those it is the stack as a text, as FORMAT.md has it for record 24."""
import os
import sys

from trainprof import _recorder

_MOST_FRAMES = 24  # of a stack
_MOST_BYTES = 4096  # of a recorded text
_MOST_KNOWN = 4096  # programs that make code as they go must not fill memory

_folders = [os.path.dirname(os.path.abspath(__file__)) + os.sep]  # ours, and torch's
_of_library = {}  # id of a code object in one of them -> the object, so that no other gets the id
_depth = {}  # name -> how far above place() its caller was
_known = {}  # (name, id of a code object, instruction) -> (handle of the name and the stack from there on, the object)


def passes_over(folder):
    _folders.append(os.path.join(folder, ""))
    _recorder.passes_over(_folders[-1])


if _recorder.recording:
    _recorder.passes_over(_folders[0])


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
    return _caller(1)[0]


def _caller(depth):
    """The same, and how far above our caller it is."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if id(code) not in _of_library:
            if not code.co_filename.startswith(tuple(_folders)):
                return frame, depth
            if len(_of_library) >= _MOST_KNOWN:
                _of_library.clear()
            _of_library[id(code)] = code
        frame = frame.f_back
        depth += 1
    return None, depth


def place(name):
    """The handle of a name, given by its own, with the stack from caller() on. Each name is reached in one way, mostly:
    the frame is looked for first where it was last time, since each one on the way there costs as much as the whole
    rest. What called the frame is looked at once for each of its instructions: a framework's loop has one caller."""
    try:
        frame = sys._getframe(_depth[name])
        return _known[name, id(frame.f_code), frame.f_lasti][0]
    except (KeyError, ValueError):
        pass
    frame, depth = _caller(0)
    if frame is None:
        return name
    _depth[name] = depth
    code = frame.f_code
    key = (name, id(code), frame.f_lasti)
    if key not in _known:
        if len(_known) >= _MOST_KNOWN:
            return name
        _known[key] = (_recorder.place(_recorder.name_of(name), _text(frame)), code)
    return _known[key][0]
