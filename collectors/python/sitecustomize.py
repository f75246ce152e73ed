# Python imports this when it starts, in every process of a program under `trainprof run`, which puts this folder on
# PYTHONPATH, and names it in TRAINPROF_PYTHON for the one line of trainprof.pth, which puts it on sys.path also where
# PYTHONPATH is not read (-I, -E) or another folder stands before it. It hands over to the user's own sitecustomize, and
# waits for the program to import torch; until then it imports nothing. It prints nothing and fails at nothing. Old
# Pythons come by, too: they must be able to read it.
import sys

_HERE = __file__.rpartition("/")[0]
_OLDEST = (3, 9)


class _Package:
    """`import trainprof` is the one that records, also where another version is installed; a module of the user's
    that has this name stays (not a mere folder, as a clone of the repository: it has no loader)."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "trainprof":
            return None
        finder = sys.modules["_frozen_importlib_external"].PathFinder
        installed = finder.find_spec(name)
        places = getattr(installed, "submodule_search_locations", None) or ()
        if installed and installed.loader and not any(finder.find_spec("_recorder", [place]) for place in places):
            return None
        return finder.find_spec(name, [_HERE])


class After:
    """The first of all finders, until the modules that it waits for are imported: {name: what to call with the module}.
    Libraries ask for a module's place without importing it. Its loader stays the same object, since others ask for its
    type."""

    def __init__(self, waiting):
        self.waiting = waiting
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting or self not in sys.meta_path:
            return None
        finders = list(sys.meta_path)
        for finder in finders[finders.index(self) + 1:]:  # those before it have been asked
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self.watch(name, spec.loader)
                return spec
        return None

    def end(self):
        self.waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def watch(self, name, loader):
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type):  # as that of built-in modules, all of them
            return

        def exec_module(module):
            vars(loader).pop("exec_module", None)  # another may wait for the same module
            call = self.waiting.pop(name, None)
            if not self.waiting and self in sys.meta_path:
                sys.meta_path.remove(self)
            try:
                execute(module)
            except BaseException as error:  # as _tracebacks.unseen has it
                BaseException.with_traceback(error, error.__traceback__.tb_next)
                raise
            if call:
                call(module)

        try:
            loader.exec_module = exec_module
        except Exception:
            pass


_awaited = None


def _install(torch):
    if _awaited:
        _awaited.end()
    try:
        from trainprof import _torch

        _torch.install(torch, After)
    except Exception:
        pass


def _tell_places(nvtx):
    """Ranges of the nvtx package tell the lines that open them, also where no torch comes."""
    try:
        import trainprof  # noqa: F401
    except Exception:
        pass


def _await():
    global _awaited
    waiting = {"torch": _install}
    if "nvtx" not in sys.modules:
        waiting["nvtx"] = _tell_places
    _awaited = After(waiting)


def _leave_path():
    sys.path[:] = [folder for folder in sys.path if folder != _HERE]


def _chain():
    ours = sys.modules.pop("sitecustomize", None)
    _leave_path()
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


def late():
    """In a process that got our library without this file (collectors/python/late_start.h)."""
    torch = sys.modules.get("torch")
    if sys.version_info < _OLDEST or any(getattr(finder, "__name__", "") == "_Package" for finder in sys.meta_path):
        return
    _leave_path()
    sys.meta_path.insert(0, _Package)
    if torch is None:
        _await()
    elif not getattr(torch.__spec__, "_initializing", False):
        _install(torch)


if __name__ == "sitecustomize":
    if sys.version_info >= _OLDEST:
        if __import__("os").environ.get("TRAINPROF_DIR"):
            sys.meta_path.insert(0, _Package)
            _await()
        else:
            sys.meta_path.append(_Package)
    _chain()
