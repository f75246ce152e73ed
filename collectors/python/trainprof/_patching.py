"""How a function is watched: by another of the same name and signature, which looks the same to pickle and inspect."""
import functools

from trainprof import _phases, _recorder
from trainprof._tracebacks import unseen

clock = _recorder.clock


def never():
    return False


def timed(original, ended, is_compiling=never):
    """`original`, and ended(begin, its first argument) after each call of it, however that ends."""

    @functools.wraps(original)
    def wrapper(*arguments, **keywords):
        if is_compiling():
            return original(*arguments, **keywords)
        begin = clock()
        try:
            return original(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            ended(begin, arguments[0] if arguments else None)

    return wrapper


def inner(original, name):
    """`original`, with a range of that name around each call: of what says nothing new of its place."""
    write = _recorder.torch_range
    handle = _recorder.place(name)

    @functools.wraps(original)
    def wrapper(*arguments, **keywords):
        begin = clock()
        try:
            return original(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            write(handle, begin)

    return wrapper


def as_range(name, report=_phases.range_ended):
    """An `ended` that reports a name of ours."""
    return lambda begin, _: report(name, begin)


def patch(modules, name, ended, is_compiling=never):
    """The same function under the name that it has in each of the modules."""
    original = getattr(modules[0], name)
    wrapper = timed(original, ended, is_compiling)
    for module in modules:
        if getattr(module, name, None) is original:
            setattr(module, name, wrapper)
