"""torch's DataLoader: when it is asked for a batch, what its settings are, and what its workers do. Per batch, never per
sample."""
import functools
import multiprocessing

from trainprof import _phases, _recorder
from trainprof._patching import as_range, timed

clock = _recorder.clock
text = _recorder.text

_MOST_LOADERS = 64  # whose settings are remembered: iterators come and go


def _settings(loader):
    """Facts of trace/recording/wire/facts.h."""
    facts = {"loader.workers": loader.num_workers, "loader.batch_size": loader.batch_size}
    for name in ("pin_memory", "prefetch_factor", "persistent_workers"):
        facts["loader." + name] = getattr(loader, name, None)
    facts["loader.sampler"] = type(loader.sampler).__name__
    if loader.num_workers > 0:
        context = loader.multiprocessing_context or multiprocessing
        facts["loader.start_method"] = context.get_start_method(allow_none=True)  # asks, and decides nothing
    return {name: value for name, value in facts.items() if value is not None}


@_phases.quiet
def _begins():
    """The process records before its workers do: what they record goes with its."""
    _phases.settings.tell_process()


@_phases.quiet
def _made(loader, iterator, begin):
    name = text("enumerate(DataLoader)#%s.__iter__" % type(iterator).__name__)
    _phases.batch_came(None, name, begin, False)
    known = _phases.settings.loaders
    if len(known) >= _MOST_LOADERS:
        known.clear()
    known[id(iterator)] = _settings(loader)
    _phases.settings.told = None if _phases.settings.told == id(iterator) else _phases.settings.told


def _batches(torch, is_compiling):
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    original = base.__next__
    names = {}
    thread = _phases.thread

    @functools.wraps(original)
    def __next__(self):
        was_in = thread.in_loader
        got_one = False
        begin = clock()
        _phases.gap_before_batch(begin, torch)
        try:
            thread.in_loader = True
            batch = original(self)
            got_one = True
            return batch
        finally:
            thread.in_loader = was_in
            _phases.batch_came(id(self), names.get(type(self)) or name_of(self), begin, got_one)

    @_phases.quiet
    def name_of(iterator):
        kind = type(iterator)
        name = names[kind] = text("enumerate(DataLoader)#%s.__next__" % kind.__name__)
        return name

    base.__next__ = __next__


def _start(torch, is_compiling):
    loader = torch.utils.data.DataLoader
    original = loader.__iter__
    thread = _phases.thread

    @functools.wraps(original)
    def __iter__(self):
        _begins()
        was_in = thread.in_loader
        begin = clock()
        try:
            thread.in_loader = True
            iterator = original(self)
        finally:
            thread.in_loader = was_in
        _made(self, iterator, begin)
        return iterator

    loader.__iter__ = __iter__


def _fetching(torch, is_compiling):
    from torch.utils.data._utils import fetch

    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        kind.fetch = timed(kind.fetch, as_range(kind.__name__ + ".fetch"))
    base = fetch._BaseDatasetFetcher
    original = base.__init__
    ended = as_range("collate")

    @functools.wraps(original)
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        original(self, dataset, auto_collation, timed(collate_fn, ended), drop_last)

    base.__init__ = __init__


class _Watched:
    """A queue as a worker sees it, with one of its methods timed."""

    def __init__(self, queue, method, name):
        self._queue = queue
        setattr(self, method, timed(getattr(queue, method), as_range(name)))

    def __getattr__(self, name):
        return getattr(self._queue, name)


def _workers(torch, is_compiling):
    from torch.utils.data._utils import worker

    original = worker._worker_loop

    @functools.wraps(original)
    def _worker_loop(dataset_kind, dataset, index_queue, data_queue, *arguments, **keywords):
        try:
            asked = _Watched(index_queue, "get", "worker waits for indices")
            given = _Watched(data_queue, "put", "worker hands over")
        except Exception:
            asked, given = index_queue, data_queue
        return original(dataset_kind, dataset, asked, given, *arguments, **keywords)

    worker._worker_loop = _worker_loop


PATCHES = (_batches, _start, _fetching, _workers)
