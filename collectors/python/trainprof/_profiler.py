"""torch.profiler in a recorded program. Its Kineto takes CUPTI, which has one client: ours lets go of it before Kineto
is prepared, and takes it back when the profile has ended. On a machine without a GPU, or where the profile is of the CPU
alone, nothing is to be done.

emit_nvtx and emit_itt use no Kineto: they enable and disable, but never prepare."""
import functools

from trainprof import _recorder
from trainprof._tracebacks import unseen


def _uses_gpu(torch, arguments):
    """As _prepare_profiler(config, activities) has them."""
    cpu = torch.profiler.ProfilerActivity.CPU
    return any(activity != cpu for activity in arguments[1])


def _lend(torch, arguments):
    try:
        if _uses_gpu(torch, arguments):
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()  # what is under way is still recorded; a profile begins so, too
            _recorder.hand_over(1)
    except Exception:
        pass


def watch(torch, is_compiling):
    module = torch.autograd.profiler
    prepare, disable = module._prepare_profiler, module._disable_profiler

    @functools.wraps(prepare)
    def _prepare_profiler(*arguments, **keywords):
        _lend(torch, arguments)
        try:
            return prepare(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            _recorder.hand_over(0)
            raise

    @functools.wraps(disable)
    def _disable_profiler(*arguments, **keywords):
        try:
            return disable(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            _recorder.hand_over(0)

    module._prepare_profiler = _prepare_profiler
    module._disable_profiler = _disable_profiler
