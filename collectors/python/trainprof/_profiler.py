"""torch.profiler in a recorded program. Its Kineto takes CUPTI, which has one client: ours lets go of it before Kineto
is prepared, and takes it back when the profile has ended. On a machine without a GPU, or where the profile is of the CPU
alone, nothing is to be done.

emit_nvtx and emit_itt use no Kineto: they enable and disable, but never prepare."""
from trainprof import _recorder
from trainprof._patching import followed, preceded


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

    def take_back():
        _recorder.hand_over(0)

    module._prepare_profiler = preceded(module._prepare_profiler, lambda arguments: _lend(torch, arguments), take_back)
    module._disable_profiler = followed(module._disable_profiler, take_back)
