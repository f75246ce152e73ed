"""How fast this machine is, for limits that are times: machine_unit.h says the same of the C++ benchmarks."""
import time
import zlib

UNIT_SECONDS = 0.36  # kUnitSeconds of machine_unit.h


def slowness():
    """How many times as long as where the limits were tried things take here and now; at least 1. Says so."""
    text = b"".join(b"%d\n" % (number * number) for number in range(600_000))
    fastest = float("inf")
    for _ in range(5):
        begin = time.monotonic()
        zlib.compress(text, 6)
        fastest = min(fastest, time.monotonic() - begin)
    slower = max(1.0, fastest / UNIT_SECONDS)
    print(f"unit of this machine: {fastest:.3f} s; limits that are times are taken {slower:.2f} times", flush=True)
    return slower
