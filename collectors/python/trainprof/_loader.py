"""torch's DataLoader: when it is asked for a batch, what its settings are, and what its workers do. Per batch, never per
sample."""
import functools
import multiprocessing

from trainprof import _phases, _recorder
from trainprof._patching import inner
from trainprof._tracebacks import unseen

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


def _begins():
    """The process records before its workers do: what they record goes with its."""
    try:
        _phases.settings.tell_process()
    except Exception:
        pass


def _made(loader, iterator):
    settings = _phases.settings
    try:
        if len(settings.loaders) >= _MOST_LOADERS:
            settings.loaders.clear()
        settings.add_loader(id(iterator), _settings(loader))
    except Exception:
        pass


def _batches(torch, is_compiling):
    from torch.utils.data import dataloader

    base = dataloader._BaseDataLoaderIter
    original = base.__next__
    names = _recorder.NamesOf("enumerate(DataLoader)#%s.__next__")
    asked, returned = _recorder.hook("loader_asked"), _recorder.hook("loader_returned")

    @functools.wraps(original)
    def __next__(self):
        begin = 0
        try:
            begin = asked()
            batch = original(self)
        except BaseException as error:
            returned(names[type(self)], self, begin, 0)
            unseen(error)
            raise
        returned(names[type(self)], self, begin, 1)
        return batch

    base.__next__ = __next__


def _start(torch, is_compiling):
    loader = torch.utils.data.DataLoader
    original = loader.__iter__
    names = _recorder.NamesOf("enumerate(DataLoader)#%s.__iter__")
    asked, returned = _recorder.hook("iterator_asked"), _recorder.hook("loader_returned")

    @functools.wraps(original)
    def __iter__(self):
        _begins()
        begin = 0
        try:
            begin = asked()
            iterator = original(self)
        except BaseException as error:
            returned(0, None, begin, 0)
            unseen(error)
            raise
        returned(names[type(iterator)], None, begin, 0)
        _made(self, iterator)
        return iterator

    loader.__iter__ = __iter__


def _watch_fetching():
    """In a worker alone: in the training process it would only repeat the loader's range."""
    from torch.utils.data._utils import fetch

    for kind in (fetch._MapDatasetFetcher, fetch._IterableDatasetFetcher):
        kind.fetch = inner(kind.fetch, kind.__name__ + ".fetch")
    base = fetch._BaseDatasetFetcher
    original = base.__init__

    @functools.wraps(original)
    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        try:
            collate_fn = inner(collate_fn, "collate")
        except Exception:
            pass
        try:
            original(self, dataset, auto_collation, collate_fn, drop_last)
        except BaseException as error:
            unseen(error)
            raise

    base.__init__ = __init__


class _Watched:
    """A queue as a worker sees it, with one of its methods timed."""

    def __init__(self, queue, method, name):
        self._queue = queue
        setattr(self, method, inner(getattr(queue, method), name))

    def __getattr__(self, name):
        return getattr(self._queue, name)


def _workers(torch, is_compiling):
    from torch.utils.data._utils import worker

    original = worker._worker_loop

    @functools.wraps(original)
    def _worker_loop(dataset_kind, dataset, index_queue, data_queue, *arguments, **keywords):
        asked, given = index_queue, data_queue
        try:
            _watch_fetching()
            asked = _Watched(index_queue, "get", "worker waits for indices")
            given = _Watched(data_queue, "put", "worker hands over")
        except Exception:
            pass
        try:
            return original(dataset_kind, dataset, asked, given, *arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise

    worker._worker_loop = _worker_loop


PATCHES = (_batches, _start, _workers)
