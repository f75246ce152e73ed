"""How a function is watched: by another of the same name and signature, which looks the same to pickle and inspect."""
import functools

from trainprof import _phases, _recorder
from trainprof._tracebacks import unseen

clock = _recorder.clock


def never():
    return False


def timed(original, name, is_compiling=never, ended=_phases.range_ended):
    """`original`, and ended(the handle of the name, begin) after each call of it, however that ends."""
    handle = _recorder.place(name)

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
            ended(handle, begin)

    return wrapper


def preceded(original, before, undo):
    """`original` after before(its arguments), which undo() takes back where it fails."""

    @functools.wraps(original)
    def wrapper(*arguments, **keywords):
        before(arguments)
        try:
            return original(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            undo()
            raise

    return wrapper


def followed(original, after):
    """`original`, and after() when it has ended, however that is."""

    @functools.wraps(original)
    def wrapper(*arguments, **keywords):
        try:
            return original(*arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        finally:
            after()

    return wrapper


def inner(original, name):
    """The same, of what says nothing new of its place."""
    return timed(original, name, ended=_recorder.hook("place_left"))


def patch(modules, name, range_name, is_compiling=never, ended=_phases.range_ended):
    """The same function under the name that it has in each of the modules."""
    original = getattr(modules[0], name)
    wrapper = timed(original, range_name, is_compiling, ended)
    for module in modules:
        if getattr(module, name, None) is original:
            setattr(module, name, wrapper)
