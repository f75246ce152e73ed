"""The way into the recording: functions of the collector's library, or none, where the process does not record."""
import os
import sys
import time

LIBRARY = "libtrainprof_injection.so"

recording = False
at_step_end = None  # as at_step_ends() has it
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
    if not library.TrainprofFindHooks() or not library.TrainprofStart():
        return None
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    functions = {}
    for name, result, arguments in (
        ("Place", pointer, [ctypes.c_char_p, ctypes.c_char_p]),
        ("PastRange", None, [pointer, whole, whole]),
        ("UserRange", whole, [ctypes.c_char_p, whole]),
        ("Mark", None, [ctypes.c_char_p, ctypes.c_uint64]),
        ("Memory", None, [pointer, ctypes.c_uint64]),
        ("Fact", None, [ctypes.c_char_p, ctypes.c_char_p]),
        ("StepBegins", None, []),
        ("PassOver", None, [ctypes.c_char_p]),
        ("ReadStacks", ctypes.c_int, [ctypes.c_int, pointer, pointer, ctypes.c_uint32]),
        ("ReadNoStacks", None, []),
        ("Hook", ctypes.py_object, [ctypes.c_char_p]),
        ("HookCalls", ctypes.c_int, [ctypes.c_char_p, ctypes.py_object]),
        ("RunBackward", ctypes.py_object, [ctypes.py_object, ctypes.py_object]),
    ):
        function = library["Trainprof" + name]  # not an attribute: one object of our own
        function.restype = result
        function.argtypes = arguments
        functions[name] = function
    waits = ctypes.CDLL(_path())["TrainprofHandOver"]  # without the GIL: other threads go on
    waits.restype = None
    waits.argtypes = [ctypes.c_int]
    functions["HandOver"] = waits
    return functions


try:
    _functions = _load()
except Exception:
    _functions = None

if _functions:
    recording = True
    past_range = _functions["PastRange"]  # (handle, begin, end)
    step_begins = _functions["StepBegins"]  # said by the program: optimizers need not be counted
    hand_over = _functions["HandOver"]  # (1): another tool is about to use CUPTI; (0): it no longer does

_places = {}


def _bytes(string):
    return str(string).encode("utf-8", "replace")


def place(name, stack=""):
    """The handle of a name of ours and the text of a stack; none is ever given back. None where memory runs out."""
    handle = _places.get((name, stack))
    if handle is None:
        handle = _places[name, stack] = _functions["Place"](_bytes(name), _bytes(stack))
    return handle


class NamesOf(dict):
    """A class -> the handle of the name that `pattern` makes of it; 0, which hooks leave out, where there is none."""

    def __init__(self, pattern):
        self.pattern = pattern

    def __missing__(self, kind):
        try:
            handle = self[kind] = place(self.pattern % kind.__name__)
            return handle
        except Exception:
            return 0


def name_of(handle):
    """Of a place without a stack."""
    return next(name for (name, stack), known in _places.items() if known == handle and not stack)


def user_range(name, begin):
    """When it ended."""
    return _functions["UserRange"](_bytes(name), begin)


def mark(name, count):
    _functions["Mark"](_bytes(name), int(count))


def memory(name, size):
    """What is held now, in bytes."""
    _functions["Memory"](place(name), size)


def fact(name, value):
    """`name` as in trace/recording/wire/facts.h."""
    _functions["Fact"](_bytes(name), _bytes(value))


def _stack_of(frame):
    """Its code objects and their lines, innermost first, and how many there are."""
    import ctypes

    codes, lines = [], []
    while frame is not None and len(codes) < 32:
        codes.append(id(frame.f_code))
        lines.append(frame.f_lineno)
        frame = frame.f_back
    count = len(codes)
    return (ctypes.c_void_p * count)(*codes), (ctypes.c_int32 * count)(*lines), count


_reads_stacks = False


def read_stacks():
    """Calls of CUDA that block tell where Python made them, and ranges where they are opened, from here on. Our own
    stack shows the library whether it reads this Python's. False where it does not."""
    import atexit

    global _reads_stacks
    if _reads_stacks:
        return True
    # In one line, which is where this function stands in both.
    if not _functions["ReadStacks"](sys.version_info[1], *_stack_of(sys._getframe())):
        return False
    atexit.register(_functions["ReadNoStacks"])
    _reads_stacks = True
    return True


def hook(name):
    """The built-in function that records this event (collectors/python/hooks.cpp)."""
    return _functions["Hook"](_bytes(name))


def run_backward(run):
    """The method of a class of engines, around the one of the engine that there is."""
    return _functions["RunBackward"](run, place("backward"))


def answers(question, function):
    """Whom the hooks ask."""
    _functions["HookCalls"](_bytes(question), function)


def at_step_ends(function):
    """Called there, too, by the thread that steps. It never raises."""
    global at_step_end
    at_step_end = function
    answers("step_ended", function)


def passes_over(folder):
    """Code in it, a path with a slash at its end, is a library's."""
    _functions["PassOver"](_bytes(folder))
