"""Where the forward pass begins in a loop whose batches come from neither a loader nor a queue: at the first module that
is called with gradients. Before it lies what made the batch, or played the game, and that is no forward pass.

torch's table of global hooks holds ours from the end of a step to that call, and is empty otherwise; a hook that stayed
would cost each module several microseconds. In a program that compiles it is never put there: dynamo looks at the table."""
import functools
import threading

from trainprof import _phases, _recorder
from trainprof._tracebacks import unseen

_KEY = "trainprof"
# An environment that asks the model at each of its moves: such calls are not waited out for ever.
_MOST_WITHOUT_GRADIENTS = 16


class _Armed(threading.local):
    calls_left = 0  # of modules by this thread


class Watch:
    def __init__(self, torch, is_compiling):
        self.hooks = torch.nn.modules.module._global_forward_pre_hooks
        self.grad_is_on = torch.is_grad_enabled
        self.is_compiling = is_compiling
        self.allowed = True
        self.armed = _Armed()

    def forbid(self):
        self.allowed = False
        self.hooks.pop(_KEY, None)

    def arm(self):
        if self.allowed:
            self.armed.calls_left = _MOST_WITHOUT_GRADIENTS
            self.hooks[_KEY] = self.called

    def disarm(self):
        self.armed.calls_left = 0
        self.hooks.pop(_KEY, None)

    def called(self, module, arguments):
        if self.is_compiling():
            return
        try:
            if self.armed.calls_left <= 0:  # another thread's
                return
            if not self.grad_is_on():
                self.armed.calls_left -= 1
                if self.armed.calls_left == 0:
                    self.disarm()
                return
            self.disarm()
            _phases.module_called()
        except Exception:
            pass


def watch(torch, is_compiling):
    watch = Watch(torch, is_compiling)
    _recorder.answers("watch_modules", watch.arm)
    if not hasattr(torch, "compile"):  # 1.13
        return watch
    original = torch.compile

    @functools.wraps(original)
    def compile(*arguments, **keywords):
        watch.forbid()
        try:
            return original(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise

    torch.compile = compile
    return watch
