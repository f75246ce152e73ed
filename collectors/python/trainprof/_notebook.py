"""The cells of a notebook. Python knows each by a made-up file; reports name it as its user does, In[3]."""
import functools
import sys

from trainprof import _phases
from trainprof._tracebacks import unseen

_COMPILER = "IPython.core.compilerop"
_FACT = "python.cell "  # trace/recording/wire/facts.h


def _tell(file, number):
    """When it trains next."""
    if number:
        _phases.settings.add(_FACT + file, "In[%s]" % number)


def _watch(module):
    original = module.CachingCompiler.cache

    @functools.wraps(original)
    def cache(self, transformed_code, number=0, *arguments, **keywords):
        try:
            file = original(self, transformed_code, number, *arguments, **keywords)
        except BaseException as error:
            unseen(error)
            raise
        try:
            _tell(file, number)
        except Exception:
            pass
        return file

    module.CachingCompiler.cache = cache


def cells(after):
    if _COMPILER not in sys.modules:
        after({_COMPILER: _watch})
        return
    _watch(sys.modules[_COMPILER])
    shell = sys.modules["IPython"].get_ipython()
    if shell is None:
        return
    for file, number in shell.compile._filename_map.items():  # the cells before the one that imports torch
        _tell(file, number)
