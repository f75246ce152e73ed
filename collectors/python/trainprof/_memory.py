"""trainprof run --memory: at the end of each step what the process and its CUDA devices hold; over some steps, once,
what each of them keeps and which line made it (_growth). Nothing of the script's is reset or switched on for good."""
import atexit
import os
import threading
import time

from trainprof import _recorder

# Past what the first steps set up once. The report sets these steps aside.
_FIRST_STEP, _STEPS = 12, 8
WINDOW = "trainprof --memory"  # read back by the analysis (trace/base/names.h)
_DEVICES_EVERY = 64  # steps: which devices are in use

clock = time.monotonic_ns


class _Counters:
    def __init__(self, torch):
        self._torch = torch
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._statm = -1
        self._devices = ()
        self._calls = 0

    def tell(self):
        if self._statm < 0:
            self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        _recorder.memory("resident", int(os.pread(self._statm, 128, 0).split()[1]) * self._page)
        if self._torch.cuda.is_initialized():
            self._tell_devices(self._torch._C._cuda_memoryStats)

    def _tell_devices(self, statistics_of):
        if self._calls % _DEVICES_EVERY == 0:
            self._devices = [device for device in range(self._torch.cuda.device_count())
                             if statistics_of(device)["reserved_bytes"]["all"]["peak"] > 0]
        self._calls += 1
        for device in self._devices:
            held = statistics_of(device)
            allocated = held["allocated_bytes"]["all"]
            _recorder.memory("cuda:%d allocated" % device, allocated["current"])
            _recorder.memory("cuda:%d allocated, peak" % device, allocated["peak"])
            _recorder.memory("cuda:%d reserved" % device, held["reserved_bytes"]["all"]["current"])

    def forked(self):
        """The parent's numbers stand behind what was opened."""
        if self._statm >= 0:
            os.close(self._statm)
            self._statm = -1


def _peak_resident():
    """Of the process since it began, in bytes; 0 where the system does not say."""
    with open("/proc/self/status", encoding="utf-8") as file:
        return next((int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM:")), 0)


class _Memory:
    def __init__(self, torch):
        self._torch = torch
        self._missing = []
        self._failed = False
        self._begin_again()

    def _begin_again(self):
        self._counters = _Counters(self._torch)
        self._thread = 0  # that steps
        self._steps = 0
        self._spent_ns = 0  # outside of the window
        self._window = None
        self._window_began = self._window_spent_ns = 0

    def step_ended(self):
        if self._failed:
            return
        thread = threading.get_ident()
        if self._thread != thread:
            if self._thread:
                return
            self._thread = thread
        begin = clock()
        try:
            self._counters.tell()
        except Exception as error:
            self._failed = True
            self._miss("memory at the ends of steps", error)
        self._steps += 1
        self._spent_ns += clock() - begin
        if self._window is not None or self._steps == _FIRST_STEP:
            self._look()

    def _miss(self, what, error):
        self._missing.append("%s (%s: %s)" % (what, type(error).__name__, error))
        if self._window is not None:
            self._window.stop()
            self._window = None
            _recorder.past_range(_recorder.place(WINDOW), self._window_began, clock())
        self._tell()

    def _look(self):
        begin = clock()
        try:
            if self._window is None:
                from trainprof import _growth

                self._window_began = begin
                self._window = _growth.Window(self._torch)
            else:
                self._window.look()
            self._window_spent_ns += clock() - begin
            if self._window.looks >= _STEPS:
                self._end_window()
        except Exception as error:
            self._miss("lines of what grows", error)

    def _end_window(self):
        begin = clock()
        window, self._window = self._window, None
        kept, missing = window.end()
        self._missing += missing
        for number, each in enumerate(kept, 1):
            _recorder.fact("memory.kept %d" % number, each.text())
        self._window_spent_ns += clock() - begin
        first = _FIRST_STEP
        _recorder.fact("memory.window", "%d %d %d" % (first, first + window.looks, self._window_spent_ns))
        _recorder.past_range(_recorder.place(WINDOW), self._window_began, clock())
        self._tell()

    def _tell(self):
        _recorder.fact("memory.cost_ns", self._spent_ns // max(1, self._steps))
        _recorder.fact("memory.peak_resident", _peak_resident())
        if self._missing:
            _recorder.fact("memory.missing", "; ".join(self._missing))

    def at_exit(self):
        if not self._steps:
            return
        try:
            if self._window is not None:
                self._end_window()
            self._tell()
        except Exception:
            pass

    def forked(self):
        """In the child: it is another process, which may train as well."""
        try:
            if self._window is not None:
                self._window.stop()
            self._counters.forked()
        except Exception:
            pass
        self._begin_again()


def watch(torch, is_compiling):
    if os.environ.get("TRAINPROF_MEMORY") != "1":
        return
    memory = _Memory(torch)
    _recorder.at_step_ends(memory.step_ended)
    os.register_at_fork(after_in_child=memory.forked)
    atexit.register(memory.at_exit)
