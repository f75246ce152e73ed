"""Runs ends.py in each of the ways that are named, in a process of its own that has torch already (2 s of a processor for
each that starts anew), and writes what it printed and how it ended, as a shell says it: WAY.out, WAY.err, WAY.code."""
import os
import runpy
import sys

import torch  # noqa: F401
import torch.utils.data  # noqa: F401

for way in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        for number, stream in ((1, "out"), (2, "err")):
            os.dup2(os.open("%s.%s" % (way, stream), os.O_WRONLY | os.O_CREAT, 0o600), number)
        sys.argv = ["ends.py", way]
        runpy.run_path("ends.py", run_name="__main__")
        sys.exit(0)  # else it would go on with the next
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(way + ".code", "w", encoding="ascii") as file:
        file.write(str(128 - code if code < 0 else code))
