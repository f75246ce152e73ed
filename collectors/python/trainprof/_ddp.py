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
        except Exception:
            pass
        return result

    ddp._ddp_init_helper = _ddp_init_helper


PATCHES = (_reducer,)


class Waits:
    """Of a thread's backward passes."""

    __slots__ = ("begin", "end", "told")

    def __init__(self):
        self.begin = self.end = 0  # of the last pass
        self.told = 0

    def tell(self):
        """Before the next backward pass: writes what the last one waited."""
        if not _models or not self.end:
            return
        try:
            for model in _models:
                self._tell(model())
        except Exception:  # another version of torch: nothing of the kind is told
            _models.clear()

    def _tell(self, model):
        if model is None:
            return
        ahead = time.time_ns() - time.monotonic_ns()
        times = model.logger._get_ddp_logging_data().ints_map
        begin = times.get("backward_compute_time_end", 0) - ahead
        end = times.get("backward_comm_time_end", 0) - ahead
        if end <= self.told or begin < self.begin or end > self.end or end - begin < _SHORTEST_NS:
            return
        self.told = end
        _recorder.past_range(_recorder.place(_RANGE), begin, end)
