"""What a training thread does between the calls that hooks see. Each hook reports what has ended; the time before it
gets its name then: what ends where a backward pass begins was the forward pass, what ends at the next batch without
one was validation.

A thread's time since its last such event is `since`, and `after` says what that event was."""
import functools
import queue
import threading
import weakref

from trainprof import _recorder, _sites

clock = _recorder.clock
text = _recorder.text
write = _recorder.torch_range

NOTHING, BATCH, BACKWARD, ZEROED, CLIPPED, STEPPING, STEPPED = range(7)

# torch's own names (trace/base/names.h), and ours where it has none.
FORWARD = text("forward")
BACKWARD_NAME = text("backward")
VALIDATION = text("validation")
QUEUE = text("Queue.get")

_SHORTEST_NS = 20_000  # of what only fills a gap: less is between two lines
# torch's prologue before the first hook of an optimizer: what passes since the backward pass is the step's.
_PROLOGUE_NS = 300_000


class _Thread(threading.local):
    since = 0
    after = NOTHING
    is_fed = False  # batches come from a loader or a queue
    in_loader = False
    in_backward = False
    batches_from = None  # id of the iterator that gave the last one
    trains = False  # has run a backward pass
    stepping = None  # id of an optimizer -> when its step began


thread = _Thread()


def forget_parent():
    """After a fork: what the parent's thread did is no part of the child."""
    thread.__dict__.clear()


class Settings:
    """What is told of the process once it trains, and of the loader that feeds it."""

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


def quiet(function):
    """A hook that errs costs its event, never the program anything."""

    @functools.wraps(function)
    def guarded(*arguments):
        try:
            return function(*arguments)
        except Exception:
            return 0

    return guarded


@quiet
def gap_before_batch(begin, torch):
    t = thread
    if t.after != BATCH or t.in_loader or begin - t.since < _SHORTEST_NS:
        return
    if t.trains or not torch.is_grad_enabled():
        write(VALIDATION, None, t.since, begin)


@quiet
def batch_came(iterator, name, begin, got_one):
    t = thread
    end = clock()
    write(name, _sites.stack(), begin, end)
    if t.in_loader:
        return
    t.since, t.after = end, BATCH if got_one else NOTHING
    t.is_fed = t.is_fed or got_one
    t.batches_from = iterator


@quiet
def backward_begins():
    """When it began."""
    t = thread
    begin = clock()
    known = t.is_fed or t.after in (BACKWARD, ZEROED, CLIPPED, STEPPING)
    if t.since and known and not t.in_backward and begin > t.since:
        write(FORWARD, None, t.since, begin)
    if settings.process or t.batches_from != settings.told:
        settings.tell(t.batches_from)
    return begin


@quiet
def backward_ends(begin):
    t = thread
    end = clock()
    if t.in_backward:  # of a checkpoint
        return
    write(BACKWARD_NAME, _sites.stack(), begin, end)
    t.since, t.after, t.trains = end, BACKWARD, True


@quiet
def gradients_cleared(name, begin):
    t = thread
    end = clock()
    write(name, None, begin, end)
    # Between a batch and its backward pass it is a part of the forward pass, as it is in a closure.
    if t.after in (NOTHING, BACKWARD, CLIPPED, STEPPED):
        t.since, t.after = end, ZEROED


@quiet
def gradients_handled(name, begin):
    """Clipped, or unscaled."""
    t = thread
    end = clock()
    write(name, _sites.stack(), begin, end)
    if t.after in (BACKWARD, CLIPPED):
        t.since, t.after = end, CLIPPED


@quiet
def step_begins(optimizer):
    t = thread
    begin = clock()
    if t.stepping is None:
        t.stepping = {}
    if t.after == BACKWARD and begin - t.since < _PROLOGUE_NS:
        begin = t.since
    t.stepping[id(optimizer)] = begin
    t.since, t.after = begin, STEPPING  # a closure may run the forward pass


@quiet
def step_ends(optimizer):
    t = thread
    begin = t.stepping.pop(id(optimizer), 0) if t.stepping else 0
    if not begin:
        return
    end = clock()
    name, is_first = optimizers.name_of(optimizer)
    write(name, _sites.stack(), begin, end)
    t.since, t.after = end, STEPPED
    if is_first and not _recorder.steps_are_told:
        _recorder.step_begins()


@quiet
def range_ended(name, begin):
    """Of something that has a name and no part in a step's phases."""
    write(name, _sites.stack(), begin, clock())


@quiet
def blocked(begin):
    """The thread has waited in a threading.Condition: for its batch, where a queue's get() did."""
    t = thread
    end = clock()
    if not t.trains or t.in_loader or end - begin < _SHORTEST_NS:
        return
    caller = _sites.caller().f_code
    if caller is not queue.Queue.get.__code__:
        write(text(getattr(caller, "co_qualname", caller.co_name)), _sites.stack(), begin, end)
        return
    write(QUEUE, _sites.stack(), begin, end)
    t.since, t.after, t.is_fed = end, BATCH, True


class Optimizers:
    """Names of optimizers: torch's, with a number from the second one of a class that is alive. Two that step in turn,
    as those of a GAN, are two; one that follows another is the same."""

    def __init__(self):
        self.known = {}  # id -> (weak reference, number, handle of the name)
        self.first = None  # the handle of what counts steps

    def name_of(self, optimizer):
        """(handle, whether its steps are counted)"""
        known = self.known.get(id(optimizer))
        if known is None or known[0]() is not optimizer:
            known = self.add(optimizer)
        return known[2], known[2] == self.first

    def add(self, optimizer):
        kind = type(optimizer)
        alive = [(other(), number) for other, number, _ in self.known.values()]
        taken = {number for other, number in alive if type(other) is kind}
        number = 1
        while number in taken:
            number += 1
        name = "Optimizer.step#%s.step" % kind.__name__
        handle = text(name if number == 1 else "%s (%d)" % (name, number))
        self.known = {key: value for key, value in self.known.items() if value[0]() is not None}
        known = self.known[id(optimizer)] = (weakref.ref(optimizer), number, handle)
        if self.first is None:
            self.first = handle
        return known


optimizers = Optimizers()
