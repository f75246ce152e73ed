# Python imports this when it starts, in every process of a program under `trainprof run`, which puts this folder on
# PYTHONPATH. It hands over to the user's own sitecustomize, and waits for the program to import torch; until then it
# imports nothing. It prints nothing and fails at nothing. Old Pythons come by, too: they must be able to read it.
import sys

_HERE = __file__.rpartition("/")[0]
_OLDEST = (3, 9)


class _Package:
    """The last of all finders: `import trainprof` finds ours where none is installed."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "trainprof":
            return None
        return sys.modules["_frozen_importlib_external"].PathFinder.find_spec(name, [_HERE])


class After:
    """The first of all finders, until the modules that it waits for are imported: {name: what to call with the module}.
    Libraries ask for a module's place without importing it. Its loader stays the same object, since others ask for its
    type."""

    def __init__(self, waiting):
        self.waiting = waiting
        sys.meta_path.insert(0, self)

    def find_spec(self, name, path=None, target=None):
        if name not in self.waiting:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                self.watch(name, spec.loader)
                return spec
        return None

    def watch(self, name, loader):
        execute = getattr(loader, "exec_module", None)

        def exec_module(module):
            del loader.exec_module
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


def _install(torch):
    sys.path.insert(0, _HERE)
    try:
        from trainprof import _torch

        _torch.install(torch, After)
    except Exception:
        pass
    finally:
        if _HERE in sys.path:
            sys.path.remove(_HERE)


def _chain():
    ours = sys.modules.pop("sitecustomize", None)
    sys.path[:] = [folder for folder in sys.path if folder != _HERE]
    try:
        import sitecustomize
    except ImportError as error:
        if getattr(error, "name", "sitecustomize") != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


if sys.version_info >= _OLDEST:
    sys.meta_path.append(_Package)
    if __import__("os").environ.get("TRAINPROF_DIR"):
        After({"torch": _install})
_chain()
