"""The functions of torch that are watched, each by one patch. A patch that does not fit the version at hand is left out
and told as a fact, never an error. What comes in is what torch was: same name, same signature, picklable by name.

Nothing is registered that torch.compile would see: what a compiled program may trace asks is_compiling() first, which
dynamo takes for a constant."""
import functools
import gc
import os
import sys
import threading

from trainprof import _ddp, _loader, _logging, _memory, _modules, _notebook, _ops, _phases, _profiler, _recorder, _sites
from trainprof._patching import never, patch, timed
from trainprof._tracebacks import unseen

clock = _recorder.clock

_COLLECTIVES = (
    "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "broadcast_object_list", "gather", "monitored_barrier", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "send",
)


def _backward(torch, is_compiling):
    variable = torch.autograd.Variable
    engine = variable._execution_engine
    _recorder.answers("is_compiling", is_compiling)
    kind = type("_ImperativeEngine", (type(engine),), {"run_backward": _recorder.run_backward(engine.run_backward)})
    variable._execution_engine = kind()


def _optimizer_step(torch, is_compiling):
    from torch.optim import optimizer as module

    step_begins, step_ended = _recorder.hook("step_begins"), _recorder.hook("step_ended")

    def begins(optimizer, arguments, keywords):
        if not is_compiling():
            step_begins(optimizer)

    def ends(optimizer, arguments, keywords):
        if not is_compiling():
            step_ended(optimizer)

    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    if version > (2, 0) and sys.version_info < (3, 13):
        module.register_optimizer_step_pre_hook(begins)
        module.register_optimizer_step_post_hook(ends)
        return
    # 1.13 has no such hooks, in 2.0 dynamo takes them off with torch's own wrapper, and since Python 3.13 it traces
    # none that runs any: ours stands within that.
    def within(step):
        @functools.wraps(step)
        def wrapper(optimizer, *arguments, **keywords):
            if is_compiling():
                return step(optimizer, *arguments, **keywords)
            begins(optimizer, arguments, keywords)
            try:
                result = step(optimizer, *arguments, **keywords)
            except BaseException as error:
                unseen(error)
                raise
            ends(optimizer, arguments, keywords)
            return result

        return wrapper

    if hasattr(module.Optimizer, "profile_hook_step"):
        profiled = module.Optimizer.profile_hook_step
        module.Optimizer.profile_hook_step = staticmethod(lambda step: profiled(within(step)))
        return
    hook = module.Optimizer._hook_for_profile

    def _hook_for_profile(self):
        kind = type(self)
        if not getattr(kind.step, "hooked", None):
            kind.step = within(kind.step)
        hook(self)

    module.Optimizer._hook_for_profile = _hook_for_profile


def _zero_grad(torch, is_compiling):
    optimizer = torch.optim.Optimizer
    original = optimizer.zero_grad
    names = _recorder.NamesOf("Optimizer.zero_grad#%s.zero_grad")
    cleared = _recorder.hook("gradients_cleared")

    @functools.wraps(original)
    def zero_grad(self, *arguments, **keywords):
        if is_compiling():
            return original(self, *arguments, **keywords)
        begin = clock()
        try:
            return original(self, *arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            cleared(names[type(self)], begin)

    optimizer.zero_grad = zero_grad


def _clipping(torch, is_compiling):
    modules = [torch.nn.utils.clip_grad, torch.nn.utils]
    for name in ("clip_grad_norm_", "clip_grad_value_"):
        patch(modules, name, name, is_compiling, _phases.gradients_handled)


def _scaler(torch, is_compiling):
    try:
        from torch.amp.grad_scaler import GradScaler
    except ImportError:  # before 2.3
        from torch.cuda.amp.grad_scaler import GradScaler
    for name, ended in (("unscale_", _phases.gradients_handled), ("step", _phases.paused), ("update", _phases.paused)):
        setattr(GradScaler, name, timed(getattr(GradScaler, name), "GradScaler." + name, is_compiling, ended))


def _saving(torch, is_compiling):
    patch([torch, torch.serialization], "save", "torch.save", ended=_phases.paused)


def _cache(torch, is_compiling):
    patch([torch.cuda.memory, torch.cuda], "empty_cache", "torch.cuda.empty_cache", ended=_phases.paused)


def _collectives(torch, is_compiling):
    if not torch.distributed.is_available():
        return
    modules = [torch.distributed.distributed_c10d, torch.distributed]
    for name in _COLLECTIVES:
        if hasattr(modules[0], name):
            patch(modules, name, "c10d::" + name, is_compiling)


def _calls_of_cuda(torch, is_compiling):
    if not _recorder.read_stacks():
        raise NotImplementedError("stacks of this Python are not known")


def _profiling(torch, is_compiling):
    _profiler.watch(torch, is_compiling)


def _waiting(torch, is_compiling):
    """For a collective that was begun with async_op=True."""
    if not torch.distributed.is_available():
        return
    work = torch.distributed.Work
    work.wait = timed(work.wait, "c10d::wait", is_compiling)


def _first_module(torch, is_compiling, after):
    watch = _modules.watch(torch, is_compiling)
    if not hasattr(torch, "compiler"):  # 2.0, which imports dynamo to compile, and 1.13
        after({"torch._dynamo": lambda dynamo: watch.forbid()})


def _queues(torch, is_compiling):
    original = threading.Condition.wait
    has_waited, blocked = _recorder.hook("has_waited"), _phases.blocked
    begins = clock  # threads wait until the interpreter ends, when modules lose their names

    @functools.wraps(original)
    def wait(self, timeout=None):
        begin = begins()
        try:
            return original(self, timeout)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            if has_waited(begin):
                blocked(begin)

    threading.Condition.wait = wait


def _garbage(torch, is_compiling):
    """Pauses by Python's collector of cycles, which stops whatever thread it comes up in. Not a function of Python: a
    Ctrl-C that came meanwhile would be raised in it, and what a callback raises is lost."""
    gc.callbacks.append(_recorder.hook("collected"))


_PATCHES = (_backward, _optimizer_step, _zero_grad, _clipping, _scaler, _saving, _cache, _collectives, _waiting,
            _queues, _garbage, _calls_of_cuda, _profiling)


def install(torch, after):
    """Once in a process, when `import torch` has run; after({name: what to call}) waits for other modules. What it
    tells of the process is written when it trains."""
    if not _recorder.recording or hasattr(install, "done"):
        return
    install.done = True
    # Without it nothing may be patched that a compiled program calls: 2.0 breaks its graphs there.
    is_compiling = getattr(getattr(torch, "compiler", torch._utils), "is_compiling", never)
    _sites.passes_over(os.path.dirname(os.path.abspath(torch.__file__)))
    _phases.answer(torch)
    facts = _phases.settings.process
    facts["python.version"] = "%d.%d.%d" % tuple(sys.version_info[:3])
    facts["torch.version"] = torch.__version__
    missing = []
    patches = [(watch, (torch, is_compiling)) for watch in (*_PATCHES, *_ddp.PATCHES, *_loader.PATCHES, _memory.watch)]
    late = ((_first_module, (torch, is_compiling, after)), (_ops.watch, (torch, is_compiling, after)),
            (_logging.loggers, (after,)), (_notebook.cells, (after,)))
    for watch, arguments in (*patches, *late):
        try:
            watch(*arguments)
        except Exception as error:
            missing.append("%s (%s: %s)" % (watch.__name__.strip("_"), type(error).__name__, error))
    if missing:
        facts["python.unwatched"] = "; ".join(missing)
