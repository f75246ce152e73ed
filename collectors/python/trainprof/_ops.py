"""trainprof run --ops: each operator and each call of a module is a range. Operators come from torch's own RecordFunction
by its ITT observer, the cheapest that builds for CPUs and for CUDA both have (collectors/itt); modules from the one place
that all of their calls go through.

torch has one observer a thread at a time: where the script profiles, ours ends before and begins again after."""
import atexit
import functools
import os
import threading
import time
import weakref

from trainprof import _phases
from trainprof._patching import followed, preceded
from trainprof._tracebacks import unseen

_MOST_NAMES = 1 << 14
_MODULE = "nn.Module: %s"  # read back by the recording's reader


class _Observer:
    """The training thread's: what its backward passes run elsewhere is observed as well."""

    def __init__(self, emit):
        self._emit = emit
        self._thread = threading.get_ident()
        self._active = None
        self.switching = False

    def on(self):
        if self._active is None and threading.get_ident() == self._thread:
            self._switch(True)

    def off(self):
        """True: it was on, and is no longer."""
        if self._active is None or threading.get_ident() != self._thread:
            return False
        self._switch(False)
        return True

    def _switch(self, on):
        self.switching = True
        try:
            if on:
                active = self._emit()
                active.__enter__()
                self._active = active
            else:
                active, self._active = self._active, None
                active.__exit__(None, None, None)
        except Exception:  # another observer that we did not see: it stays
            pass
        finally:
            self.switching = False


def _give_way(module, observer):
    """To profiles that the script makes: from before they are prepared to after they have ended."""
    yielded = []  # one entry: the script has the observer's place

    def give(arguments):
        if not observer.switching and observer.off():
            yielded.append(True)

    def take_back():
        if yielded and not observer.switching:
            yielded.clear()
            observer.on()

    for name in ("_prepare_profiler", "_enable_profiler"):
        setattr(module, name, preceded(getattr(module, name), give, take_back))
    module._disable_profiler = followed(module._disable_profiler, take_back)


def _cost_ns(torch, observer):
    """What a range adds to an operator, by 200 of the smallest, with and without; the best of five rounds each."""
    one = torch.zeros(1)
    best = [float("inf")] * 2
    for _ in range(5):
        for on in (0, 1):
            (observer.on if on else observer.off)()
            begin = time.perf_counter_ns()
            for _ in range(200):
                one.abs()
            best[on] = min(best[on], time.perf_counter_ns() - begin)
    return max(0, best[1] - best[0]) // 200


class _Names:
    """Of modules: "layer1.0.conv1 (Conv2d)", as seen from the one that was called first, and that one's class alone."""

    def __init__(self):
        self._known = {}  # id -> (reference to the module, for the id may become another's, name)

    def of(self, module):
        known = self._known.get(id(module))
        if known is None or known[0]() is not module:
            try:
                self._add_all(module)
                known = self._known[id(module)]
            except Exception:  # a module may list others as it likes, or not be whole yet
                return _MODULE % type(module).__name__
        return known[1]

    def _add_all(self, root):
        if len(self._known) > _MOST_NAMES:  # a script that makes modules as it goes
            self._known = {key: known for key, known in self._known.items() if known[0]() is not None}
        for path, module in root.named_modules():
            kind = type(module).__name__
            name = _MODULE % ("%s (%s)" % (path, kind) if path else kind)
            self._known[id(module)] = (weakref.ref(module), name)


def _modules(torch, is_compiling, after):
    push, pop = torch._C._itt.rangePush, torch._C._itt.rangePop
    original = torch.nn.Module.__call__
    name_of = _Names().of

    @functools.wraps(original)
    def call(self, *arguments, **keywords):
        if is_compiling():
            return original(self, *arguments, **keywords)
        push(name_of(self))
        try:
            return original(self, *arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            pop()

    torch.nn.Module.__call__ = call
    if not hasattr(torch, "compiler"):  # 2.0, whose dynamo takes a program apart that has any other, and 1.13
        after({"torch._dynamo": lambda dynamo: setattr(torch.nn.Module, "__call__", original)})


def watch(torch, is_compiling, after):
    if os.environ.get("TRAINPROF_OPS") != "1":
        return
    if not torch.profiler.itt.is_available():
        raise NotImplementedError("this build of torch has no ITT, which --ops needs")
    observer = _Observer(torch.autograd.profiler.emit_itt)
    _give_way(torch.autograd.profiler, observer)
    _phases.settings.add("ops.cost_ns", _cost_ns(torch, observer))
    _modules(torch, is_compiling, after)
    observer.on()
    atexit.register(observer.off)
