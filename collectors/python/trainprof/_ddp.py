"""How long DistributedDataParallel waits for other ranks within a backward pass: its reducer tells, where it measures by
the CPU's clock. On GPUs it would look at events of CUDA, and the kernels of NCCL tell more: left as it is there.

What it tells of a pass is there from the next forward pass on, as times of the system's clock."""
import functools
import time
import weakref

from trainprof import _recorder
from trainprof._tracebacks import unseen

_RANGE = "c10d::all_reduce (DistributedDataParallel)"
_SHORTEST_NS = 1000

_models = []  # weak references
_told = 0  # the end of the wait that was told last


def _reducer(torch, is_compiling):
    if not torch.distributed.is_available():
        return
    ddp = torch.nn.parallel.DistributedDataParallel
    original = ddp._ddp_init_helper

    @functools.wraps(original)
    def _ddp_init_helper(self, *arguments, **keywords):
        try:
            result = original(self, *arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        try:
            if self.device_type == "cpu":
                self._set_ddp_runtime_logging_sample_rate(1)
                _models.append(weakref.ref(self, _models.remove))
                _recorder.answers("tell_waits", _tell_waits)
        except Exception:
            pass
        return result

    ddp._ddp_init_helper = _ddp_init_helper


PATCHES = (_reducer,)


def _tell_waits(begin, end):
    """Before a thread's next backward pass: what its last one, from `begin` to `end`, waited."""
    try:
        for model in _models:
            _tell(model(), begin, end)
    except Exception:  # another version of torch: nothing of the kind is told
        _models.clear()


def _tell(model, begin, end):
    global _told
    if model is None:
        return
    ahead = time.time_ns() - time.monotonic_ns()
    times = model.logger._get_ddp_logging_data().ints_map
    waits_from = times.get("backward_compute_time_end", 0) - ahead
    waits_to = times.get("backward_comm_time_end", 0) - ahead
    if waits_to <= _told or waits_from < begin or waits_to > end or waits_to - waits_from < _SHORTEST_NS:
        return
    _told = waits_to
    _recorder.past_range(_recorder.place(_RANGE), waits_from, waits_to)
