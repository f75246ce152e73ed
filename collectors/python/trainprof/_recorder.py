"""The way into the recording: functions of the collector's library, or none, where the process does not record."""
import os
import time

LIBRARY = "libtrainprof_injection.so"

recording = False
steps_are_told = False  # by trainprof.step(): optimizers need not be counted
clock = time.monotonic_ns  # of ranges


def _path():
    injected = os.environ.get("NVTX_INJECTION64_PATH", "")
    if os.path.basename(injected) == LIBRARY:
        return injected
    folder = os.path.dirname(os.path.abspath(__file__))
    return os.path.join(os.path.dirname(os.path.dirname(folder)), LIBRARY)


def _load():
    """The functions by their names; None where nothing is to be recorded."""
    if not os.environ.get("TRAINPROF_DIR"):
        return None
    import ctypes

    library = ctypes.PyDLL(_path())  # keeps the GIL: no function takes longer than giving it up would
    if not library.TrainprofStart():
        return None
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    functions = {}
    for name, result, arguments in (
        ("Text", pointer, [ctypes.c_char_p]),
        ("Range", None, [pointer, pointer, whole, whole]),
        ("UserRange", None, [ctypes.c_char_p, whole, whole]),
        ("Mark", None, [ctypes.c_char_p, ctypes.c_uint64]),
        ("Fact", None, [ctypes.c_char_p, ctypes.c_char_p]),
        ("StepBegins", None, []),
    ):
        function = library["Trainprof" + name]  # not an attribute: one object of our own
        function.restype = result
        function.argtypes = arguments
        functions[name] = function
    return functions


try:
    _functions = _load()
except Exception:
    _functions = None

if _functions:
    recording = True
    torch_range = _functions["Range"]  # (name, stack, begin, end): handles of text(), ns of clock()
    step_begins = _functions["StepBegins"]

_texts = {}


def _bytes(string):
    return str(string).encode("utf-8", "replace")


def text(string):
    """The handle of a text of ours, for torch_range; none is ever given back. None where memory runs out."""
    handle = _texts.get(string)
    if handle is None:
        handle = _texts[string] = _functions["Text"](_bytes(string))
    return handle


def user_range(name, begin, end):
    _functions["UserRange"](_bytes(name), begin, end)


def mark(name, count):
    _functions["Mark"](_bytes(name), int(count))


def fact(name, value):
    """`name` as in trace/recording/wire/facts.h."""
    _functions["Fact"](_bytes(name), _bytes(value))
