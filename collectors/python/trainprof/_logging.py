"""What a training thread writes for people to read: metrics to TensorBoard, Weights & Biases and MLflow, lines to the
handlers of `logging`. Of each call one range; what a phase did meanwhile is no part of it."""
import functools
import logging
import os
import sys

from trainprof import _recorder, _sites
from trainprof._patching import timed
from trainprof._tracebacks import unseen

clock = _recorder.clock


_logged = _recorder.hook("logged")


def _watch(owner, prefix, is_wanted):
    module = owner.__name__ if owner in sys.modules.values() else owner.__module__
    for name, function in list(vars(owner).items()):
        if is_wanted(name) and callable(function) and function.__module__ == module:
            setattr(owner, name, timed(function, prefix + name, ended=_logged))


def _tensorboard(module):
    _watch(module.SummaryWriter, "SummaryWriter.", lambda name: name.startswith("add_") or name == "flush")


def _wandb(module):  # wandb.log is the method of the run
    _watch(module.Run, "wandb.", lambda name: name == "log" or name.startswith("log_"))


def _mlflow(module):  # mlflow's own names are taken from here when it has been executed
    _watch(module, "mlflow.", lambda name: name.startswith("log_"))


_MODULES = {
    "torch.utils.tensorboard.writer": _tensorboard,
    "tensorboardX.writer": _tensorboard,
    "wandb.sdk.wandb_run": _wandb,
    "mlflow.tracking.fluent": _mlflow,
}


def _never_raises(watch):
    def watched(module):
        try:
            watch(module)
        except Exception:
            pass

    return watched


def _handlers():
    _sites.passes_over(os.path.dirname(os.path.abspath(logging.__file__)))
    original = logging.Handler.handle
    names = _recorder.NamesOf("logging.%s.emit")

    @functools.wraps(original)
    def handle(self, record):
        begin = clock()
        try:
            return original(self, record)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            _logged(names[type(self)], begin)

    logging.Handler.handle = handle


def loggers(after):
    waiting = {}
    for name, watch in _MODULES.items():
        if name in sys.modules:
            _never_raises(watch)(sys.modules[name])
        else:
            waiting[name] = _never_raises(watch)
    after(waiting)
    _handlers()
