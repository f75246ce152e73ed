"""What the tests of the trainprof program share: starting it in an empty folder with a clean
environment. Python's standard library alone.

Environment, set by CTest: TRAINPROF (the program), TRAINPROF_TEST_LIB (folder of the collector, may
be empty), TRAINPROF_TEST_NVTX (a program that uses NVTX, may be empty).
"""
import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TRAINPROF = os.environ["TRAINPROF"]
# The virtual GPU has all of CUPTI's habits at once: a kill loses the device times of up to a second.
HARD_GPU = os.environ.get("VGPU_HARD", "0") not in ("", "0")
# Generous: a loaded machine of two cores. A wait that ends here is a failure, never a pass.
TIMEOUT_S = 60
# Variables that would change where and whether trainprof records.
FOREIGN = ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_", "SLURM_", "OMPI_", "PMI_",
           "TORCHELASTIC_", "TRAINPROF", "NVTX_INJECTION", "CUDA_INJECTION", "NO_COLOR")


def python_with(module):
    """A Python of this machine that has it: this one, else Debian's."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import " + module], capture_output=True, check=False).returncode == 0:
            return python
    raise AssertionError(f"no Python here has {module}: apt-get install python3-{module}")


def clean_environment(lib_dir, **changes):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN)}
    environment["TRAINPROF_LIB_DIR"] = lib_dir
    environment.update(changes)
    return {k: v for k, v in environment.items() if v is not None}


def wait_until(condition, what, timeout=TIMEOUT_S):
    """The first true value of condition(); fails the test when there is none in time."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {timeout} s for {what}")


def process_state(pid):
    """'R', 'S', 'T', 'Z' ...; '' when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def catches(pid, number):
    """Whether the process handles that signal by now, or ignores it."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as status:
            masks = dict(line.split(":\t") for line in status if line.startswith("Sig"))
    except OSError:
        return True  # it has ended
    return bool((int(masks["SigCgt"], 16) | int(masks["SigIgn"], 16)) >> (number - 1) & 1)


def has_open(pid, path):
    """Whether the process has that file open by now."""
    for descriptor in glob.glob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):  # closed meanwhile
            if os.readlink(descriptor) == path:
                return True
    return False


class TrainprofTest(unittest.TestCase):
    def setUp(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="trainprof-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.cwd = os.path.join(self.folder, "cwd")
        os.mkdir(self.cwd)
        self.lib_dir = os.environ.get("TRAINPROF_TEST_LIB", "")
        if not self.lib_dir:
            self.lib_dir = os.path.join(self.folder, "lib")
            os.mkdir(self.lib_dir)
            open(os.path.join(self.lib_dir, "libtrainprof_injection.so"), "wb").close()

    def environment(self, **changes):
        return clean_environment(self.lib_dir, **changes)

    def run_plain(self, arguments, **options):
        """A program, without trainprof, in the same surroundings."""
        options.setdefault("env", self.environment())
        options.setdefault("cwd", self.cwd)
        return subprocess.run(arguments, capture_output=True, timeout=TIMEOUT_S, **options)

    def trainprof(self, *arguments, **options):
        return self.run_plain([TRAINPROF, *arguments], **options)

    def start(self, *arguments, **options):
        """`trainprof run` in the background; killed with all that it started when the test ends."""
        options.setdefault("env", self.environment())
        options.setdefault("cwd", self.cwd)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        process = subprocess.Popen([TRAINPROF, *arguments], start_new_session=True, **options)

        def end():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        self.addCleanup(end)
        return process

    def end_with_the_test(self, process):
        """A test that fails leaves no process behind."""
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

    def run_folders(self):
        return sorted(glob.glob(os.path.join(self.cwd, "trainprof-*")))

    def the_run_folder(self):
        folders = self.run_folders()
        self.assertEqual(len(folders), 1, folders)
        return folders[0]

    def path(self, name):
        return os.path.join(self.cwd, name)

    def script(self, name, text):
        """A Python script in the current folder; returns the command that runs it."""
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return [sys.executable, self.path(name)]

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def read_when_there(self, name):
        """The file's first whole line, once it is there."""
        def line():
            if os.path.exists(self.path(name)):
                text = self.read(name).decode()
                return text if text.endswith("\n") else None
            return None
        return wait_until(line, name).strip()


# A program that says who it is in "pid", notes each signal in "got", and ends with code 42 after
# SIGTERM or "limit" signals.
SIGNAL_COUNTER = """
import os, signal, sys, time
limit = int(sys.argv[1])
got = []
def note(number, frame):
    got.append(signal.Signals(number).name)
    with open("got", "w") as file: file.write(" ".join(got) + "\\n")
for s in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "CONT"):
    signal.signal(getattr(signal, "SIG" + s), note)
with open("pid", "w") as file: file.write(str(os.getpid()) + "\\n")
end = time.monotonic() + 60
while len(got) < limit and time.monotonic() < end: time.sleep(0.01)
time.sleep(0.3)  # a signal delivered twice would come in now
sys.exit(42)
"""


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # CTest may run us with it ignored
    unittest.main()
