"""What a training thread does between the calls that hooks see. Each hook reports what has ended; the time before it
gets its name then: what ends where a backward pass begins was the forward pass, what ends at the next batch without
one was validation.

A thread's time since its last such event is `since`, and `after` says what that event was. Hooks come at each step:
no function here may raise, and each is written to cost little."""
import queue
import threading
import weakref

from trainprof import _ddp, _recorder, _sites

clock = _recorder.clock
write = _recorder.torch_range
place = _sites.place

NOTHING, BATCH, BACKWARD, ZEROED, CLIPPED, STEPPING, STEPPED, MODULE = range(8)

# torch's own names (trace/base/names.h), and ours where it has none.
FORWARD = _recorder.place("forward")
VALIDATION = _recorder.place("validation")
OWN_BATCH = "next batch (own code)"

SHORTEST_NS = 20_000  # of what only fills a gap: less is between two lines
_MOST_PAUSES = 64  # of a gap that nothing names
# torch's prologue before the first hook of an optimizer: what passes since the backward pass is the step's.
_PROLOGUE_NS = 300_000


class State:
    """Of a thread."""

    __slots__ = ("since", "after", "is_fed", "in_loader", "in_backward", "batches_from", "trains", "stepping",
                 "idle_since", "calls_left", "waits", "pauses")

    def __init__(self):
        self.since = 0
        self.after = NOTHING
        self.is_fed = False  # batches come from a loader or a queue
        self.in_loader = False
        self.in_backward = False
        self.batches_from = None  # id of the iterator that gave the last one
        self.trains = False  # has run a backward pass
        self.stepping = {}  # id of an optimizer -> when its step began
        self.idle_since = 0  # the end of the last step or backward pass
        self.calls_left = 0  # of modules, see _modules
        self.waits = _ddp.Waits()
        self.pauses = []  # (begin, end) of what the thread logged since, and is no part of the phase to come


class _Thread(threading.local):
    def __init__(self):
        self.state = State()


thread = _Thread()
modules = None  # the Watch of _modules, where there is one


def forget_parent():
    """After a fork: what the parent's thread did is no part of the child."""
    thread.state.__init__()


class Settings:
    """What is told of the process once it loads or trains, and of the loader that feeds it."""

    def __init__(self):
        self.process = {}  # facts, until they are told
        self.loaders = {}  # id of an iterator -> facts of its loader
        self.told = None  # of which iterator

    def tell_process(self):
        for name, value in self.process.items():
            _recorder.fact(name, value)
        self.process = {}

    def tell(self, iterator):
        self.tell_process()
        if iterator != self.told:
            for name, value in self.loaders.get(iterator, {}).items():
                _recorder.fact(name, value)
            self.told = iterator


settings = Settings()


def name_gap(handle, t):
    """The time since the last event, less pauses, has a name. When it ends: now."""
    begin = t.since
    for pause in t.pauses:
        if pause[0] >= begin:
            _recorder.past_range(handle, begin, pause[0])
            begin = pause[1]
    t.pauses.clear()
    return write(handle, begin)


def gap_before_batch(begin, torch):
    """When the loader was asked: `begin`, or when that had been looked at."""
    try:
        t = thread.state
        if t.in_loader or begin - t.since < SHORTEST_NS:
            return begin
        if t.trains or not torch.is_grad_enabled():
            return name_gap(VALIDATION, t) if t.pauses else write(VALIDATION, t.since)
    except Exception:
        pass
    return begin


def batch_came(iterator, name, begin, got_one):
    try:
        t = thread.state
        end = write(place(name), begin)
        if t.in_loader:
            return
        t.since = end
        t.batches_from = iterator
        if got_one:
            t.after = BATCH
            t.is_fed = True
        else:
            t.after = NOTHING
    except Exception:
        pass


def forward_begins(t):
    """A module was called, in a loop that no loader feeds."""
    if t.after in (BACKWARD, CLIPPED, STEPPED, ZEROED):
        now = clock()
        t.since = write(place(OWN_BATCH), t.idle_since) if now - t.idle_since > SHORTEST_NS else now
        t.after = MODULE


def backward_begins():
    """When it began."""
    try:
        t = thread.state
        if settings.process or t.batches_from != settings.told:
            settings.tell(t.batches_from)
        if not t.in_backward:
            t.waits.tell()
        if t.since and not t.in_backward and (t.is_fed or t.after in (BACKWARD, ZEROED, CLIPPED, STEPPING, MODULE)):
            return name_gap(FORWARD, t) if t.pauses else write(FORWARD, t.since)
    except Exception:
        pass
    return clock()


def backward_ends(begin):
    try:
        t = thread.state
        if t.in_backward:  # of a checkpoint
            return
        t.since = t.idle_since = t.waits.end = write(place("backward"), begin)
        t.waits.begin = begin
        t.after = BACKWARD
        t.trains = True
        if modules is not None and not t.is_fed:
            modules.arm(t)
    except Exception:
        pass


def gradients_cleared(name, begin):
    try:
        t = thread.state
        end = write(_recorder.place(name), begin)
        # Between a batch and its backward pass it is a part of the forward pass, as it is in a closure.
        if t.after in (NOTHING, BACKWARD, CLIPPED, STEPPED):
            t.since = end
            t.after = ZEROED
    except Exception:
        pass


def gradients_handled(name, begin):
    """Clipped, or unscaled."""
    try:
        t = thread.state
        end = write(place(name), begin)
        if t.after in (BACKWARD, CLIPPED):
            t.since = end
            t.after = CLIPPED
    except Exception:
        pass


def step_begins(optimizer):
    try:
        t = thread.state
        begin = clock()
        if t.after == BACKWARD and begin - t.since < _PROLOGUE_NS:
            begin = t.since
        t.stepping[id(optimizer)] = begin
        t.since = begin
        t.after = STEPPING  # a closure may run the forward pass
    except Exception:
        pass


def step_ends(optimizer):
    try:
        t = thread.state
        begin = t.stepping.pop(id(optimizer), 0)
        if not begin:
            return
        name = optimizers.name_of(optimizer)
        t.since = t.idle_since = write(place(name), begin)
        t.after = STEPPED
        if modules is not None and not t.is_fed:
            modules.arm(t)
        if name == optimizers.first and not _recorder.steps_are_told and _recorder.step_begins():
            # What began before is left out; this end is where the first recorded step begins.
            write(place(name), clock())
        if _recorder.at_step_end is not None and name == optimizers.first and not _recorder.steps_are_told:
            _recorder.at_step_end()
            t.since = t.idle_since = clock()
    except Exception:
        pass


def range_ended(name, begin):
    """Of something that has a name and no part in a step's phases."""
    try:
        write(place(name), begin)
    except Exception:
        pass


def pause_ended(name, begin):
    """Of the like between two steps: the next batch is not made before."""
    try:
        thread.state.idle_since = write(place(name), begin)
    except Exception:
        pass


def logged(name, begin, arguments):
    """By a thread that trains: others have their own time for it. `name` may be by the class of the first argument."""
    try:
        t = thread.state
        if not t.since:
            return
        if type(name) is not str:
            name = name[type(arguments[0])]
        end = t.idle_since = write(place(name), begin)
        if end - begin > SHORTEST_NS:
            if len(t.pauses) >= _MOST_PAUSES:
                t.pauses.clear()
            t.pauses.append((begin, end))
    except Exception:
        pass


def _name_of(frame):
    """Of its function, as co_qualname of Python 3.11 has it."""
    code = frame.f_code
    name = getattr(code, "co_qualname", None)
    if name:
        return name
    if code is queue.Queue.get.__code__:  # of other queues, too
        return "Queue.get"
    owner = frame.f_locals.get("self")
    return code.co_name if owner is None else "%s.%s" % (type(owner).__name__, code.co_name)


def blocked(begin):
    """The thread has waited in a threading.Condition: for its batch, where a queue's get() did."""
    try:
        t = thread.state
        if not t.trains or t.in_loader or clock() - begin < SHORTEST_NS:
            return
        frame = _sites.caller()
        end = write(place(_name_of(frame)), begin)
        if frame.f_code is queue.Queue.get.__code__:
            t.since = end
            t.after = BATCH
            t.is_fed = True
    except Exception:
        pass


class Optimizers:
    """Names of optimizers: torch's, with a number from the second one of a class that is alive. Two that step in turn,
    as those of a GAN, are two; one that follows another is the same."""

    def __init__(self):
        self.known = {}  # id -> (weak reference, number, name)
        self.first = None  # the name of the one that counts steps

    def name_of(self, optimizer):
        known = self.known.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            known = self.add(optimizer)
        return known[2]

    def add(self, optimizer):
        kind = type(optimizer)
        self.known = {key: value for key, value in self.known.items() if value[0]() is not None}
        taken = {number for other, number, _ in self.known.values() if type(other()) is kind}
        number = 1
        while number in taken:
            number += 1
        name = "Optimizer.step#%s.step" % kind.__name__
        if number > 1:
            name += " (%d)" % number
        known = self.known[id(optimizer)] = (weakref.ref(optimizer), number, name)
        if self.first is None:
            self.first = name
        return known


optimizers = Optimizers()
