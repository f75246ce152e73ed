"""What the hooks (collectors/python/phases.h) ask Python, and tell of the program. Hooks come at each step: nothing here
may raise."""
import queue
import weakref

from trainprof import _ddp, _recorder, _sites

_OWN_BATCH = _recorder.place("next batch (own code)")

gradients_handled = _recorder.hook("gradients_handled")
range_ended = _recorder.hook("range_ended")
paused = _recorder.hook("paused")
_module_called = _recorder.hook("module_called")
_queue_gave = _recorder.hook("queue_gave")
_facts_changed = _recorder.hook("facts_changed")


class Settings:
    """What is told of the process once it loads or trains, and of the loader that feeds it."""

    def __init__(self):
        self.process = {}  # facts, until they are told
        self.loaders = {}  # id of an iterator -> facts of its loader
        self.told = None  # of which iterator

    def add(self, name, value):
        """A fact of the process."""
        self.process[name] = value
        _facts_changed()

    def add_loader(self, iterator, facts):
        self.loaders[iterator] = facts
        if self.told == iterator:  # another had its id
            self.told = None
        _facts_changed()

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


def module_called():
    """In a loop that no loader feeds."""
    _module_called(_OWN_BATCH)


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
        frame = _sites.caller()
        ended = _queue_gave if frame.f_code is queue.Queue.get.__code__ else range_ended
        ended(_recorder.place(_name_of(frame)), begin)
    except Exception:
        pass


class Optimizers:
    """Names of optimizers: torch's, with a number from the second one of a class that is alive. Two that step in turn,
    as those of a GAN, are two; one that follows another is the same."""

    def __init__(self):
        self.known = {}  # id -> (weak reference, number)
        self.first = None  # the name of the one that counts steps
        self.gone = _recorder.hook("optimizer_gone")

    def name_of(self, optimizer):
        """Asked once in the life of each, mostly."""
        key = id(optimizer)
        kind = type(optimizer)
        if key in self.known:
            number = self.known[key][1]
        else:
            taken = {number for other, number in self.known.values() if type(other()) is kind}
            number = min(set(range(1, len(taken) + 2)) - taken)
        name = "Optimizer.step#%s.step" % kind.__name__
        if number > 1:
            name += " (%d)" % number
        handle = _recorder.place(name)
        if self.first is None:
            self.first = handle
            _recorder.hook("steps_are_of")(handle)
        self.known[key] = (weakref.ref(optimizer, lambda _: self._forget(key)), number)
        return handle

    def _forget(self, key):
        try:
            self.gone(key)
            self.known.pop(key, None)
        except Exception:
            pass


def answer(torch):
    """Before the first hook is called."""
    optimizers = Optimizers()
    for question, function in (("site", _sites.place), ("grad_is_on", torch.is_grad_enabled), ("tell", settings.tell),
                               ("name_of", optimizers.name_of)):
        _recorder.answers(question, function)
