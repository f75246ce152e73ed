"""The built-in functions that Python's hooks call (collectors/python/hooks.cpp), called by hand in each Python that is
installed, without torch."""
import glob
import json
import os
import shutil
import subprocess
import sys

import harness
from harness import TRAINPROF, TrainprofTest

# A loop as hooks see it, which times itself. The helper is a library.
LOOP = """
import json, os, time
import helper
from trainprof import _phases, _recorder, _sites

_sites.passes_over(os.path.dirname(helper.__file__))
assert not %(reads_stacks)r or _recorder.read_stacks()

class Torch:
    is_grad_enabled = staticmethod(lambda: True)

class SGD:
    pass

class Engine:
    # It runs another pass within itself, as checkpoints do.
    def run_backward(self, depth, *, seconds):
        if depth == 0:
            return sleeps("backward", seconds)
        return engine.run_backward(depth - 1, seconds=seconds)

class Watched(Engine):
    run_backward = _recorder.run_backward(Engine().run_backward)

engine = Watched()
_recorder.answers("is_compiling", lambda: False)
_phases.answer(Torch)
hook, place = _recorder.hook, _recorder.place
asked, returned = hook("loader_asked"), hook("loader_returned")
step_begins, step_ended = hook("step_begins"), hook("step_ended")
cleared, logged = hook("gradients_cleared"), hook("logged")
optimizer, iterator = SGD(), object()
steps = []

def sleeps(phase, seconds):
    begin = time.perf_counter()
    time.sleep(seconds)
    steps[-1][phase] = 1e3 * (time.perf_counter() - begin)

def train():
    steps.append({})
    begin = asked()
    sleeps("input_wait", 0.004)
    helper.calls(returned, place("enumerate(DataLoader)#It.__next__"), iterator, begin, 1)  # batch
    cleared(place("Optimizer.zero_grad#SGD.zero_grad"), time.monotonic_ns())
    sleeps("forward", 0.002)
    begin = time.monotonic_ns()
    sleeps("other", 0.003)
    helper.calls(logged, place("logging.X.emit"), begin)  # log
    helper.calls(lambda: engine.run_backward(1, seconds=0.003))  # backward
    step_begins(optimizer)
    sleeps("optimizer", 0.001)
    assert helper.calls(step_ended, optimizer) == 1  # step

for _ in range(30):
    train()  # loop
print(json.dumps(steps))
"""
HELPER = "def calls(function, *arguments):\n    return function(*arguments)\n"
MOST_MS = 1.0  # what a phase may differ from the script's own figure
# What may go wrong, in each order that a loop can take.
WRONG = """
import os, sys, threading, time
from trainprof import _phases, _recorder
assert _recorder.read_stacks()
hook, place = _recorder.hook, _recorder.place
names = ("loader_asked iterator_asked loader_returned gradients_cleared gradients_handled step_begins step_ended optimizer_gone steps_are_of facts_changed module_called range_ended place_left paused "
         "logged has_waited queue_gave collected").split()
for name in names:
    for arguments in ((), (0,), (None, None), (0, 0), (0, 0, 0, 0), (0, "x", 2.5, []), (place("x"), object(), 1, 1),
                      (0, 10**40)):
        if name != "collected":
            hook(name)(*arguments)
for arguments in (("stop", {}), ("start", {}), ("stop", {}), ("start", {}), ("stop", {"generation": "x"}),
                  ("start", {}), ("stop", {"generation": 9})):
    hook("collected")(*arguments)
assert hook("no such hook") == 0

class Torch:
    def is_grad_enabled():
        raise RuntimeError("not seen")
_phases.answer(Torch)
class Engine:
    def run_backward(self, value):
        raise ValueError(value)
class Watched(Engine):
    run_backward = _recorder.run_backward(Engine().run_backward)
engine = Watched()
def kept(error):
    def answer(*arguments):
        raise error
    for question in ("site", "grad_is_on", "tell", "tell_waits", "watch_modules", "name_of", "is_compiling"):
        _recorder.answers(question, answer)

def loop():
    begin = hook("loader_asked")()
    hook("loader_returned")(place("l"), None, begin, 1)
    time.sleep(0.001)
    begin = hook("loader_asked")()
    hook("loader_returned")(place("l"), None, begin, 0)
    hook("facts_changed")()
    try:
        engine.run_backward(7)
    except ValueError as error:
        assert error.args == (7,)
    optimizer = object()
    hook("step_begins")(optimizer)
    hook("step_ended")(optimizer)

kept(RuntimeError("not seen"))
threads = [threading.Thread(target=lambda: [loop() for _ in range(20)]) for _ in range(4)]
[thread.start() for thread in threads]
loop()
[thread.join() for thread in threads]
kept(KeyboardInterrupt())
try:
    loop()
except KeyboardInterrupt:
    print("interrupted")
kept(RuntimeError("not seen"))
# More functions than are remembered.
text = "\\n".join("def f%d(): ended(name, 1)" % i for i in range(6000))
scope = {"ended": hook("range_ended"), "name": place("many")}
exec(compile(text, "many.py", "exec"), scope)
for i in range(6000):
    scope["f%d" % i]()
pid = os.fork()
if pid == 0:
    loop()
    os._exit(0)
print(os.waitpid(pid, 0)[1])
"""


def pythons():
    """One of each minor version."""
    found = {}
    for path in [sys.executable, *(shutil.which("python3.%d" % minor) for minor in range(10, 14)),
                 *sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.1[0-3].*/bin/python3")))]:
        told = path and subprocess.run([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                       capture_output=True, check=False)
        if told and told.returncode == 0:
            found.setdefault(told.stdout.decode().strip(), path)
    return {"3.%d" % minor: found["3.%d" % minor] for minor in range(10, 14) if "3.%d" % minor in found}


class Hooks(TrainprofTest):
    def run_script(self, python, text):
        os.makedirs(self.path("lib"), exist_ok=True)
        with open(self.path("lib/helper.py"), "w", encoding="utf-8") as file:
            file.write(HELPER)
        with open(self.path("loop.py"), "w", encoding="utf-8") as file:
            file.write("import sys\nsys.path.insert(0, 'lib')\n" + text)
        result = self.trainprof("run", "-o", "run", "--force", "--", python, "loop.py")
        self.assertEqual(result.returncode, 0, result.stderr.decode())
        return result

    def test_phases_and_their_lines(self):
        for version, python in pythons().items():
            for reads_stacks in (True, False):
                with self.subTest(python=version, reads_stacks=reads_stacks):
                    result = self.run_script(python, LOOP % {"reads_stacks": reads_stacks})
                    self.check_phases(json.loads(result.stdout))
                    self.check_lines()

    def check_phases(self, steps):
        report = json.loads(self.trainprof("report", "run", "--format", "json").stdout)
        rank = report["ranks"][0]
        self.assertEqual(rank["steps"]["source"], "optimizer")
        count = rank["steps"]["count"]
        self.assertGreaterEqual(count, 19)
        account = {it["class"]: it["ms_per_step"] for it in rank["host_account"]}
        for phase in steps[0]:
            truth = sum(step[phase] for step in steps[-count:]) / count
            self.assertAlmostEqual(account[phase], truth, delta=MOST_MS, msg=phase)

    def check_lines(self):
        """Each at the line that its comment names: the helper's frame is a library's. Above it is who called."""
        self.assertEqual(self.trainprof("export", "run", "--force", "-o", "trace.json").returncode, 0)
        stacks = {}
        for event in json.loads(self.read("trace.json"))["traceEvents"]:
            if "Call stack" in event.get("args", {}):
                stacks.setdefault(event["name"], set()).add(event["args"]["Call stack"])
        with open(self.path("loop.py"), encoding="utf-8") as file:
            line_of = {line.partition("  # ")[2].strip(): number for number, line in enumerate(file, 1)}

        script = self.path("loop.py")
        for name, comment in (("enumerate(DataLoader)#It.__next__", "batch"), ("logging.X.emit", "log"),
                              ("backward", "backward"), ("Optimizer.step#SGD.step", "step")):
            frames = "%s(%d): train;%s(%d): <module>" % (script, line_of[comment], script, line_of["loop"])
            self.assertEqual({stack[-len(frames):] for stack in stacks.get(name)}, {frames}, name)

    def test_several_may_wait_for_a_module(self):
        text = ("After, told, before = type(sys.meta_path[0]), [], sys.meta_path[:]\n"
                "def wait(i): After({'colorsys': lambda module: told.append((i, module.rgb_to_hsv(0, 0, 1)))})\n"
                "for i in range(3): wait(i)\n"
                "import colorsys\n"
                "print(sorted(told), sys.meta_path == before, 'exec_module' in vars(colorsys.__loader__))\n")
        for version, python in pythons().items():
            with self.subTest(python=version):
                result = self.run_script(python, text)
                color = (0.6666666666666666, 1.0, 1)
                self.assertEqual(result.stdout.decode(), "%r True False\n" % [(i, color) for i in range(3)])

    def test_nothing_harms_the_script(self):
        for version, python in pythons().items():
            with self.subTest(python=version):
                result = self.run_script(python, WRONG)
                self.assertEqual(result.stdout.decode(), "interrupted\n0\n")
                self.assertNotIn(b"not seen", result.stderr)


if __name__ == "__main__":
    harness.main()
