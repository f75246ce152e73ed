"""The viewer in a real window (display.py): mouse, keys, dropped files, settings, a fine display.
Skipped where there is no such display."""
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import display
import pictures
from display import HEIGHT, WIDTH

SKIP = 77
# Of the window: left of the list of tracks is theirs, right of it the timeline, below the findings.
TIMELINE = (400, 170, 1260, 400)
FINDINGS = (10, 420, 380, 690)
STATUS = (0, 702, 640, 720)
SCREEN = (0, 0, WIDTH, HEIGHT)
LIGHT_PANEL = (0xfc, 0xfc, 0xfd)
SOON_S = 5  # of the processor's time: far less than loading takes
REST_S = 2  # in which a window at rest would have drawn four frames
HAND = os.environ["X11_HAND"]  # x11_hand.cpp
# A frame that shows a word for the first time may be on screen for a moment; text is antialiased.
MOST_DIFFERENT = 0.005


class Window(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-window-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.display = display.Display(self.folder)
        self.addCleanup(self.display.close)

    @contextlib.contextmanager
    def viewer(self, *arguments, size=("--size", f"{WIDTH}x{HEIGHT}")):
        process = subprocess.Popen(
            [pictures.TRAINPROF, "view", *arguments, *size],
            env=pictures.environment(self.folder, DISPLAY=self.display.name),
            stderr=subprocess.PIPE, text=True)
        try:
            found = self.display.do("search", "--sync", "--onlyvisible", "--class", "trainprof")
            self.window = found.stdout.split()[0]
            self.display.do("windowmove", self.window, 0, 0)
            self.display.do("windowfocus", self.window)
            yield process
            process.wait(timeout=pictures.TIMEOUT_S)
            self.assertEqual((process.returncode, process.stderr.read()), (0, ""))
        finally:
            process.kill()
            process.wait()
            process.stderr.close()

    def until(self, what, condition):
        end = time.monotonic() + pictures.TIMEOUT_S
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited for {what}")
            time.sleep(0.05)

    def still(self, box):
        """What a rectangle shows once it does not change any more."""
        last, since = None, time.monotonic()
        end = since + pictures.TIMEOUT_S
        while time.monotonic() < min(end, since + 0.7):
            now = self.display.pixels(box)
            if now != last:
                last, since = now, time.monotonic()
            time.sleep(0.05)
        return last

    def changes(self, what, box, *action):
        before = self.still(box)
        self.display.do(*action)
        self.until(what, lambda: self.display.pixels(box) != before)
        return before

    def test_a_session(self):
        with self.viewer(pictures.SAMPLE):
            empty = bytes(len(self.display.pixels(TIMELINE)))
            self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
            self.assertNotEqual(self.still(TIMELINE), empty)
            self.display.do("mousemove", 800, 250)
            before = self.changes("the wheel's zoom", TIMELINE, "click", 4)
            self.display.do("key", "Home")
            self.changes("a step that is gone to", TIMELINE, "key", "w")
            self.click_a_finding()
            self.changes("the help sheet", (300, 100, 980, 600), "key", "question")
            self.display.do("key", "Escape")
            self.display.do("key", "t")
            light = bytes(reversed(LIGHT_PANEL))
            self.until("the light theme", lambda: light in self.display.pixels(FINDINGS))
            self.assertNotEqual(before, self.still(TIMELINE))
            self.display.do("key", "ctrl+q")
        kept = self.settings()
        self.assertEqual((kept["theme"], kept["recent"]), ("light", [pictures.SAMPLE]))

    def settings(self):
        with open(os.path.join(self.folder, "config", "trainprof", "viewer.json"),
                  encoding="utf-8") as file:
            return json.load(file)

    def click_a_finding(self):
        """Wherever the first stands in its pane: a click on it moves the timeline."""
        before = self.still(TIMELINE)
        left, top, _, bottom = FINDINGS
        for y in range(top + 5, bottom, 12):
            self.display.do("mousemove", left + 60, y, "click", 1)
            if self.still(TIMELINE) != before:
                return
        self.fail("no click on the findings changed the timeline")

    def test_with_nothing_open(self):
        with self.viewer():
            self.until("the welcome", lambda: len(set(self.display.pixels(SCREEN))) > 20)
            self.display.do("key", "ctrl+q")

    def test_settings_are_those_of_the_last_time(self):
        light = bytes(reversed(LIGHT_PANEL))
        with self.viewer(pictures.SAMPLE):
            self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
            self.assertNotIn(light, self.display.pixels(SCREEN))
            self.display.do("key", "t")
            self.until("the light theme", lambda: light in self.display.pixels(FINDINGS))
            self.display.do("windowsize", "--sync", self.window, 1000, 600)
            self.still(SCREEN)
            self.display.do("key", "ctrl+q")
        with self.viewer(pictures.SAMPLE, size=()):
            self.until("the light theme", lambda: light in self.display.pixels(SCREEN))
            geometry = self.display.do("getwindowgeometry", "--shell", self.window).stdout
            self.assertIn("WIDTH=1000\nHEIGHT=600", geometry)
            self.display.do("key", "ctrl+q")
        self.assertEqual(self.settings()["recent"], [pictures.SAMPLE])

    def test_a_file_is_recent_when_nothing_else_was_done(self):
        for path in (pictures.SAMPLE, pictures.GPU_SAMPLE):
            with self.viewer(path):
                self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
                self.display.do("key", "ctrl+q")
        self.assertEqual(self.settings()["recent"], [pictures.GPU_SAMPLE, pictures.SAMPLE])

    def drop(self, *paths):
        dropped = self.display.run(HAND, "drop", self.window, *paths)
        self.assertEqual(dropped.returncode, 0, dropped.stderr)

    def test_a_file_that_is_dropped_is_opened(self):
        path = os.path.join(self.folder, "a run, 100 % ## \u00e9\u6f22")
        shutil.copytree(pictures.SAMPLE, path)
        with self.viewer():
            self.until("the welcome", lambda: len(set(self.display.pixels(SCREEN))) > 20)
            self.drop(path)
            self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
            self.display.do("mousemove", 800, 250)
            self.changes("the wheel's zoom", TIMELINE, "click", 4)
            before = self.still(STATUS)
            self.drop(pictures.GPU_SAMPLE, path)
            self.until("what became of the second", lambda: self.display.pixels(STATUS) != before)
            self.display.do("key", "ctrl+q")
        self.assertEqual(self.settings()["recent"], [pictures.GPU_SAMPLE, path])

    def test_files_are_taken_however_long_their_names_are(self):
        """Whether a drop is taken must not hang on the number of bytes in its list of files."""
        paths = []
        for name in ("run", "run2"):
            paths.append(os.path.join(self.folder, name))
            shutil.copytree(pictures.SAMPLE, paths[-1])
        with self.viewer():
            self.until("the welcome", lambda: len(set(self.display.pixels(SCREEN))) > 20)
            for path in paths:
                self.drop(path)
            self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
            self.display.do("key", "ctrl+q")
        self.assertEqual(self.settings()["recent"], paths[::-1])

    def test_at_rest_it_does_nothing(self):
        """Its threads sleep all the time, also while a text is being written."""
        with self.viewer(pictures.SAMPLE) as process:
            self.until("the timeline", lambda: len(set(self.display.pixels(TIMELINE))) > 20)
            self.display.do("mousemove", WIDTH // 2, HEIGHT - 3)
            for _ in range(2):
                self.until("nothing", lambda: self.sleeps_through(process.pid))
                self.display.do("key", "ctrl+f")
            self.display.do("key", "Escape", "ctrl+q")

    @staticmethod
    def sleeps_through(pid):
        """Whether no thread of a process was woken for a while."""
        def wakings():
            found = {}
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii", errors="replace") as file:
                    found[thread] = [line for line in file if "ctxt_switches" in line]
            return found
        before = wakings()
        time.sleep(REST_S)
        return wakings() == before

    def test_everything_is_as_large_as_the_display_asks(self):
        """On a display of 192 dots an inch, what --scale 2 shows."""
        picture = os.path.join(self.folder, "view.png")
        subprocess.run([pictures.TRAINPROF, "view", pictures.SAMPLE, "--screenshot", picture, "--size",
                        f"{WIDTH}x{HEIGHT}", "--scale", "2"], check=True, timeout=pictures.TIMEOUT_S,
                       env=pictures.environment(self.folder))
        expected = pictures.read_rows(picture)[2]
        self.assertEqual(self.display.run(HAND, "dpi", 192).returncode, 0)
        self.display.do("mousemove", WIDTH // 2, HEIGHT - 3)
        with self.viewer(pictures.SAMPLE):
            self.until("the same at twice the size", lambda: pictures.difference(
                self.display.rows(SCREEN), expected) <= MOST_DIFFERENT)
            self.display.do("key", "ctrl+q")

    def test_is_closed_while_it_loads(self):
        path = os.path.join(self.folder, "long.json.gz")
        event = (b'{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":1,"dur":1},')
        with open(path, "wb") as file:  # which may hold several streams, one behind the other
            file.write(gzip.compress(b'{"traceEvents":['))
            file.write(gzip.compress(event * 200_000, 1) * 200)
        with self.viewer(path) as process:
            self.until("the progress", lambda: len(set(self.display.pixels(SCREEN))) > 20)
            before = self.display.pixels(SCREEN)
            self.until("more progress", lambda: self.display.pixels(SCREEN) != before)
            self.assertEqual(set(self.display.pixels(FINDINGS)), set(self.display.pixels((0, 690, 380, 700))),
                             "nothing is shown yet")
            before = self.processor_seconds(process.pid)
            self.display.do("key", "ctrl+q")
            self.until("the end", lambda: os.waitid(
                os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT))
            self.assertLess(self.processor_seconds(process.pid) - before, SOON_S)

    @staticmethod
    def processor_seconds(pid):
        """Of a process, also of one that has ended and was not waited for; not of the machine's others."""
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    if display.missing():
        print("Skipped:", display.missing())
        sys.exit(SKIP)
    unittest.main()
