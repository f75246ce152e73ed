"""What a step keeps, by the line of the user's that made it: tensors, Python's own objects, blocks of a CUDA device.

Python's tracemalloc tells where an object was made, from when it is told to begin. What lives is counted at the end of
each step of a window, by line; of what a loop makes and drops there are always as many. A line keeps something where
it has more at each end than at the last, and all lines together do, too: of a buffer that is full an older one goes for
each that comes."""
import _tracemalloc
import dis
import functools
import gc
import os
import sys
import tracemalloc

_FRAMES = 24  # of a traceback: library code lies between an object and the user's line
_FEWEST_STEPS = 3  # between the two ends that are compared
_LEAST_COUNT = 0.25  # more objects a step
_LEAST_PYTHON_BYTES = 16 << 10  # a step: less is no matter
_LEAST_OF_ALL = 0.5  # of what a line has more, all lines together must have
_MOST_NODES = 50_000  # that are followed at the end of a step
_MOST_LINES = 8
_OURS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
# As trace/symbols/user_frames.cpp has it.
_FOREIGN = ("site-packages/", "dist-packages/", "/torch/", "lib/python", "<")
_IN_PLACE = ("INPLACE_", "BINARY_OP")
_LOOKS_ITSELF = {"locals", "vars", "dir", "eval", "exec"}  # a function that may hold the same copy of its variables


def _made_at():
    """The function that tells the frames of an object: Python's own, but in 3.11, where that misses what stands before
    an object that has a dictionary."""
    if sys.version_info[:2] != (3, 11):
        return _tracemalloc._get_object_traceback
    import ctypes

    traceback_of = ctypes.pythonapi["_PyTraceMalloc_GetTraceback"]
    traceback_of.restype = ctypes.py_object
    traceback_of.argtypes = [ctypes.c_uint, ctypes.c_size_t]

    def made_at(thing):
        flags = type(thing).__flags__
        before = 16 * ((flags >> 14 & 1) + (flags >> 4 & 1))  # the collector's head, the dictionary's
        return traceback_of(0, id(thing) - before)

    return made_at


def _is_users(file):
    return not file.startswith(_OURS) and not any(part in file for part in _FOREIGN)


_callers = {}  # (file, line) -> the same of the user's frame that led there, first


def _line_of(frames):
    """(file, line) of the innermost frame of the user's, of (file, line)s, innermost first; else the innermost."""
    users = iter(frame for frame in frames if _is_users(frame[0]))
    line = next(users, None)
    if line is None:
        return frames[0] if frames else ("", 0)
    if line not in _callers:
        _callers[line] = next(users, ("", 0))
    return line


class Kept:
    """What a line has more at the end of each step."""

    __slots__ = ("kind", "device", "bytes", "count", "graphs", "line", "variable", "file")

    def __init__(self, kind, device, file, line, variable=""):
        self.kind = kind  # "tensor", "graph", "python", "block"
        self.device = device
        self.file = file
        self.line = line
        self.variable = variable
        self.bytes = self.count = self.graphs = 0.0

    def text(self):
        """As wire/facts.h has it."""
        caller, caller_line = _callers.get((self.file, self.line), ("", 0))
        words = (self.kind, self.device, "%d" % self.bytes, "%.3f" % self.count, "%.3f" % self.graphs,
                 self.variable, "%d" % self.line, self.file, "%d" % caller_line, caller)
        return "\t".join(word.replace("\t", " ") for word in words)


def _more(values):
    """How many more the last has than the first; 0 where there were less once in between."""
    falls = any(after < before for before, after in zip(values, values[1:]))
    return 0 if falls else values[-1] - values[0]


class _Lines:
    """Counts and bytes by a key, at the end of each step that was looked at."""

    def __init__(self):
        self._ends = []  # of each: key -> [count, bytes, graphs]
        self._all = []

    def add(self, found, count, size):
        self._ends.append(found)
        self._all.append((count, size))

    def grown(self):
        """(key, count, bytes, graphs) a step, of those that have more each time. The first end is not compared: what a
        step makes once and the next one drops was not there yet."""
        ends, everything = self._ends[1:], self._all[1:]
        steps = len(ends) - 1
        if steps < _FEWEST_STEPS:
            return []
        all_counts, all_bytes = (everything[-1][i] - everything[0][i] for i in (0, 1))
        rows = []
        for key in ends[-1]:
            counts, sizes, graphs = ([end.get(key, (0, 0, 0))[i] for end in ends] for i in (0, 1, 2))
            count, size = _more(counts), sizes[-1] - sizes[0]
            if count < _LEAST_COUNT * steps or all_counts < _LEAST_OF_ALL * count:
                continue
            if size > 0 and all_bytes < _LEAST_OF_ALL * size:
                continue
            rows.append((key, count / steps, max(0, size) / steps, max(0, graphs[-1] - graphs[0]) / steps))
        return rows


class _Storages:
    """The bytes behind tensors, each storage once."""

    def __init__(self):
        self._seen = set()

    def bytes_of(self, tensor):
        try:
            untyped = getattr(tensor, "untyped_storage", None)
            storage = untyped() if untyped else tensor.storage()  # before 2.0
            if storage._cdata in self._seen:
                return 0
            self._seen.add(storage._cdata)
            return storage.nbytes()
        except Exception:  # of a kind that has none: sparse, wrapped
            return 0


def _nodes_behind(function, budget):
    """How many functions a graph holds, at most `budget`."""
    seen = {function}
    waiting = [function]
    while waiting and len(seen) < budget:
        for node, _ in waiting.pop().next_functions:
            if node is not None and node not in seen:
                seen.add(node)
                waiting.append(node)
    return len(seen)


def _variable_of(tensor, frame):
    """(name, file, line) of the user's variable that a tensor is, where a line of its function works on it in place."""
    while frame is not None:
        code = frame.f_code
        if _is_users(code.co_filename) and not _LOOKS_ITSELF.intersection(code.co_names):
            names = frame.f_locals
            name = next((name for name, value in list(names.items()) if value is tensor), None)
            if code.co_flags & 1 and isinstance(names, dict):
                names.clear()  # Python's copy of a function's variables would keep what they are now
            if name is not None:
                return name, code.co_filename, _line_that_changes(code, name)
        frame = frame.f_back
    return None


def _line_that_changes(code, name):
    """The last one that stores to the name what an operator gave; 0 where there is none."""
    line = found = 0
    before = ""
    for instruction in dis.get_instructions(code):
        starts = getattr(instruction, "line_number", None) if sys.version_info >= (3, 13) else instruction.starts_line
        line = starts or line
        if instruction.opname.startswith("STORE_") and before.startswith(_IN_PLACE):
            stored = instruction.argval
            if stored == name or type(stored) is tuple and stored[0] == name:  # of two instructions in one
                found = line
        before = instruction.opname
    return found


class _Graphs:
    """Of tensors with a graph: how many functions it holds, from step to step."""

    def __init__(self):
        self._sizes = {}  # key -> (at the ends of steps, the key's kind)
        self._end = 0

    def add(self, found):
        """`found`: key -> nodes."""
        self._end += 1
        self._sizes = {key: self._sizes.get(key, []) + [nodes] for key, nodes in found.items()}

    def grown(self):
        """(key, nodes a step) of those that hold more each time."""
        rows = []
        for key, sizes in self._sizes.items():
            steps = len(sizes) - 1
            if steps >= _FEWEST_STEPS and all(before < after for before, after in zip(sizes, sizes[1:])):
                rows.append((key, (sizes[-1] - sizes[0]) / steps))
        return rows


class _Tracing:
    """tracemalloc, for as long as the script does not ask for it: what it calls of it ends ours before."""

    def __init__(self):
        self.on = False
        self.given_up = ""  # why there is none
        self._put_back = {}
        self.made_at = _made_at()
        if _tracemalloc.is_tracing():
            self.given_up = "the script uses tracemalloc itself"
            return
        for name, value in vars(tracemalloc).items():
            if callable(value) and not name.startswith("_") and not isinstance(value, type):
                self._put_back[name] = value
        for name, original in self._put_back.items():
            setattr(tracemalloc, name, self._giving_way(original))
        _tracemalloc.start(_FRAMES)
        self.on = True

    def _giving_way(self, original):
        @functools.wraps(original)
        def call(*arguments, **keywords):
            if self.on:
                self.end()
                self.given_up = "the script uses tracemalloc itself"
            return original(*arguments, **keywords)

        return call

    def end(self):
        if self.on:
            self.on = False
            _tracemalloc.stop()
            vars(tracemalloc).update(self._put_back)


class _Blocks:
    """What a CUDA device's allocator has given out, by the line that asked."""

    def __init__(self, torch):
        self._memory = None
        self.missing = ""
        self.lines = _Lines()
        if not torch.cuda.is_initialized():
            return
        memory = torch.cuda.memory
        is_enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
        if is_enabled is None or not hasattr(torch._C, "_cuda_record_memory_history"):
            self.missing = "lines of CUDA's allocations (this torch does not tell them)"
        elif is_enabled():
            self.missing = "lines of CUDA's allocations (the script records their history itself)"
        else:
            memory._record_memory_history("state", context="state", stacks="python")
            self._memory = memory

    def look(self):
        if self._memory is None:
            return
        found, count, size = {}, 0, 0
        for segment in self._memory._snapshot()["segments"]:
            for block in segment["blocks"]:
                if block["state"] != "active_allocated":
                    continue
                count += 1
                size += block["size"]
                frames = block.get("frames")
                if not frames:
                    continue
                file, line = _line_of([(frame["filename"], frame["line"]) for frame in frames])
                row = found.setdefault(("cuda:%d" % segment["device"], file, line), [0, 0, 0])
                row[0] += 1
                row[1] += block["size"]
        self.lines.add(found, count, size)

    def end(self):
        memory, self._memory = self._memory, None
        if memory is not None:
            memory._record_memory_history(None)


class Window:
    """Some steps of the thread that makes one; look() at the end of each, end() at last."""

    def __init__(self, torch):
        self._torch = torch
        self._tensors, self._graphs, self._objects = _Lines(), _Graphs(), _Lines()
        self._unnamed = {}  # id of a tensor that was there before -> (name, file, line) of its variable
        self.looks = 0
        self._blocks = _Blocks(torch)
        self._tracing = _Tracing()

    def look(self):
        self.looks += 1
        with self._torch._C.DisableTorchFunction():
            self._look_at_tensors()
        self._blocks.look()
        if self._tracing.on:
            self._look_at_objects()

    def _look_at_tensors(self):
        storages = _Storages()
        everything = gc.get_objects()
        kinds = {kind for kind in set(map(type, everything)) if issubclass(kind, self._torch.Tensor)}
        tensors = [each for each in everything if type(each) in kinds]
        del everything
        tensors.sort(key=lambda tensor: tensor._base is not None)  # a view's storage is its base's
        found, graphs, budget, whole = {}, {}, _MOST_NODES, 0
        for tensor in tensors:
            size = storages.bytes_of(tensor)
            whole += size
            frames = self._tracing.made_at(tensor) if self._tracing.on else None
            file, line = _line_of(frames) if frames else ("", 0)
            function = tensor.grad_fn
            if function is not None and budget > 0:
                nodes = _nodes_behind(function, budget)
                budget -= nodes
                key = (str(tensor.device), file, line) if file else id(tensor)
                graphs[key] = max(nodes, graphs.get(key, 0))
                if not file and nodes > 1 and key not in self._unnamed:
                    self._unnamed[key] = _variable_of(tensor, sys._getframe(1))
            if not file:
                continue
            row = found.setdefault((str(tensor.device), file, line), [0, 0, 0])
            row[0] += 1
            row[1] += size
            row[2] += function is not None
        self._tensors.add(found, len(tensors), whole)
        self._graphs.add(graphs)

    def _look_at_objects(self):
        found, lines = {}, {}
        for trace in _tracemalloc._get_traces():
            frames = trace[2]
            line = lines.get(frames)
            if line is None:
                ours = any(file.startswith(_OURS) for file, _ in frames)
                line = lines[frames] = ("", 0) if ours else _line_of(frames)
            row = found.setdefault(line, [0, 0, 0])
            row[0] += 1
            row[1] += trace[1]
        found.pop(("", 0), None)
        # Of what Python holds in all only the number is known.
        self._objects.add(found, sys.getallocatedblocks(), sum(row[1] for row in found.values()))

    def stop(self):
        """Nothing is traced any longer; again: nothing happens."""
        self._tracing.end()
        self._blocks.end()

    def end(self):
        """What each step keeps, graphs that grow and then the most first, and what could not be seen, in words."""
        self.stop()
        missing = [self._blocks.missing] if self._blocks.missing else []
        if self._tracing.given_up:
            missing.append("lines of what grows (%s)" % self._tracing.given_up)
        rows = {}
        for (device, file, line), count, size, graphs in self._tensors.grown():
            kept = rows[device, file, line] = Kept("tensor", device, file, line)
            kept.count, kept.bytes, kept.graphs = count, size, graphs
        self._add_graphs(rows)
        for (device, file, line), count, size, _ in self._blocks.lines.grown():
            if (device, file, line) not in rows:
                kept = rows[device, file, line] = Kept("block", device, file, line)
                kept.count, kept.bytes = count, size
        for (file, line), count, size, _ in self._objects.grown():
            if size >= _LEAST_PYTHON_BYTES:
                kept = rows["python", file, line] = Kept("python", "", file, line)
                kept.count, kept.bytes = count, size
        most = sorted(rows.values(), key=lambda it: (it.kind != "graph", -it.bytes, -it.count, it.file, it.line))
        return most[:_MOST_LINES], missing

    def _add_graphs(self, rows):
        for key, nodes in self._graphs.grown():
            if type(key) is tuple:
                kept = Kept("graph", *key)
            else:
                variable = self._unnamed.get(key)
                if variable is None:
                    continue
                name, file, line = variable
                kept = Kept("graph", "", file, line, name)
            kept.graphs = nodes
            rows["graph", key] = kept
