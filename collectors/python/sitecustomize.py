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


class _AfterTorch:
    """The first of all finders, until torch is imported: then the hooks come in. Libraries ask for torch's place
    without importing it. The module's loader stays the same object, since others ask for its type."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            find = None if finder is cls else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                cls.watch(spec.loader)
                return spec
        return None

    @classmethod
    def watch(cls, loader):
        execute = getattr(loader, "exec_module", None)

        def exec_module(module):
            del loader.exec_module
            if cls in sys.meta_path:
                sys.meta_path.remove(cls)
            execute(module)
            _install(module)

        try:
            loader.exec_module = exec_module
        except Exception:
            pass


def _install(torch):
    try:
        from trainprof import _torch

        _torch.install(torch)
    except Exception:
        pass


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
    if __import__("os").environ.get("TRAINPROF_DIR"):
        sys.meta_path[:0] = [_AfterTorch, _Package]
    else:
        sys.meta_path.append(_Package)
_chain()
