"""The viewer in a real window, of an X server that draws into memory (Xvfb), with a mouse and a
keyboard (xdotool). Skipped where these are not installed."""
import contextlib
import json
import mmap
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import pictures

SKIP = 77
WIDTH, HEIGHT = 1280, 720
# Of the window: left of the list of tracks is theirs, right of it the timeline, below the findings.
TIMELINE = (400, 170, 1260, 400)
FINDINGS = (10, 420, 380, 690)
LIGHT_PANEL = (0xfc, 0xfc, 0xfd)


class Display:
    """An X server of its own, and what its screen shows."""

    def __init__(self, folder):
        receive, send = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(send), "-screen", "0", f"{WIDTH}x{HEIGHT}x24", "-fbdir", folder,
             "-nolisten", "tcp"], pass_fds=[send], stderr=subprocess.DEVNULL)
        os.close(send)
        with os.fdopen(receive, encoding="ascii") as pipe:
            self.name = ":" + pipe.readline().strip()
        with open(os.path.join(folder, "Xvfb_screen0"), "rb") as file:
            self.memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def close(self):
        self.memory.close()
        self.server.terminate()
        self.server.wait(timeout=pictures.TIMEOUT_S)

    def do(self, *arguments):
        return subprocess.run(["xdotool", *map(str, arguments)], check=False, capture_output=True,
                              text=True, timeout=pictures.TIMEOUT_S,
                              env=dict(os.environ, DISPLAY=self.name))

    def pixels(self, box):
        """The bytes of a rectangle (left, top, right, bottom) of the screen."""
        header = struct.unpack(">25I", self.memory[:100])
        start, line = header[0] + header[19] * 12, header[12]
        left, top, right, bottom = box
        return b"".join(self.memory[start + y * line + left * 4:start + y * line + right * 4]
                        for y in range(top, bottom))


class Window(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-window-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.display = Display(self.folder)
        self.addCleanup(self.display.close)

    @contextlib.contextmanager
    def viewer(self, *arguments):
        process = subprocess.Popen(
            [pictures.TRAINPROF, "view", *arguments, "--size", f"{WIDTH}x{HEIGHT}"],
            env=pictures.environment(self.folder, DISPLAY=self.display.name),
            stderr=subprocess.PIPE, text=True)
        try:
            found = self.display.do("search", "--sync", "--onlyvisible", "--class", "trainprof")
            self.display.do("windowmove", found.stdout.split()[0], 0, 0)
            self.display.do("windowfocus", found.stdout.split()[0])
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
        with open(os.path.join(self.folder, "config", "trainprof", "viewer.json"),
                  encoding="utf-8") as file:
            kept = json.load(file)
        self.assertEqual((kept["theme"], kept["recent"]), ("light", [pictures.SAMPLE]))

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
            self.until("the welcome", lambda: len(set(self.display.pixels((0, 0, WIDTH, HEIGHT)))) > 20)
            self.display.do("key", "ctrl+q")


if __name__ == "__main__":
    if not (shutil.which("Xvfb") and shutil.which("xdotool")):
        print("Skipped: needs Xvfb and xdotool: scripts/install_packages.sh test")
        sys.exit(SKIP)
    unittest.main()
