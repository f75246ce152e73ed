"""A picture without a window is the same whichever way OpenGL is had, and the program finds one that
works by itself. Each way is forced by TRAINPROF_OPENGL, and fails where there is nothing to have."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import display
import pictures

SKIP = 77
SIZE = "640x400"
# Graphics cards round otherwise than Mesa's software renderer.
MOST_DIFFERENT = 0.02
# A folder without EGL's drivers: neither of its ways works then.
NO_EGL = {"__EGL_VENDOR_LIBRARY_DIRS": "/nonexistent"}


class OpenGl(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-opengl-")
        self.addCleanup(shutil.rmtree, self.folder)

    def draw(self, way, **changes):
        """The rows of a picture that was drawn in that way; None, and why, where it was not."""
        name = os.path.join(self.folder, "view.png")
        run = subprocess.run(
            [pictures.TRAINPROF, "view", pictures.GPU_SAMPLE, "--screenshot", name, "--size", SIZE],
            env=pictures.environment(self.folder, TRAINPROF_OPENGL=way, **changes), text=True,
            capture_output=True, timeout=pictures.TIMEOUT_S, check=False)
        if run.returncode == 0:
            return pictures.read_rows(name)[2], ""
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("no OpenGL 3.2 to draw with", run.stderr)
        self.assertFalse(os.path.exists(name))
        return None, run.stderr

    def expect_the_usual_picture(self, rows):
        usual, error = self.draw("surfaceless")
        if usual is None:
            self.skipTest(f"needs Mesa's EGL to compare with: {error}")
        self.assertLessEqual(pictures.difference(rows, usual), MOST_DIFFERENT)

    def screen(self):
        shown = display.Display(self.folder)
        self.addCleanup(shown.close)
        return shown.name

    def fails_without_egl(self, way):
        self.assertIn("EGL: ", self.draw(way, **NO_EGL)[1])


class Surfaceless(OpenGl):
    def test_is_what_is_taken_first(self):
        rows, error = self.draw("")
        self.assertIsNotNone(rows, error)
        self.expect_the_usual_picture(rows)

    def test_is_nothing_else(self):
        self.fails_without_egl("surfaceless")


class Device(OpenGl):
    def test_gives_the_same_picture(self):
        rows, error = self.draw("device")
        if rows is None:
            self.assertIn("EGL: no device", error)
            self.skipTest("this machine's EGL has no device")
        self.expect_the_usual_picture(rows)

    def test_is_nothing_else(self):
        self.fails_without_egl("device")


class HiddenWindow(OpenGl):
    def test_gives_the_same_picture(self):
        rows, error = self.draw("window", DISPLAY=self.screen())
        self.assertIsNotNone(rows, error)
        self.expect_the_usual_picture(rows)

    def test_is_taken_where_egl_does_not_work(self):
        rows, error = self.draw("", DISPLAY=self.screen(), **NO_EGL)
        self.assertIsNotNone(rows, error)
        self.expect_the_usual_picture(rows)

    def test_needs_a_display(self):
        self.assertIn("DISPLAY", self.draw("window")[1])


class Nothing(OpenGl):
    def test_the_error_names_what_each_way_said(self):
        error = self.draw("", **NO_EGL)[1]
        self.assertEqual((error.count("EGL: "), error.count("GLFW: ")), (2, 1), error)
        self.assertIn("libgl1-mesa-dri", error)
        self.assertEqual(error.count("\n"), 1)

    def test_another_name_is_a_usage_error(self):
        run = subprocess.run([pictures.TRAINPROF, "view", "--screenshot", "view.png"], text=True,
                             env=pictures.environment(self.folder, TRAINPROF_OPENGL="glide"),
                             capture_output=True, timeout=pictures.TIMEOUT_S, check=False)
        self.assertEqual(run.returncode, 2)
        self.assertIn("surfaceless, device, window", run.stderr)


if __name__ == "__main__":
    if "HiddenWindow" in sys.argv and display.missing():
        print("Skipped:", display.missing())
        sys.exit(SKIP)
    outcome = unittest.main(exit=False).result
    for _, reason in outcome.skipped:
        print("Skipped:", reason)
    if not outcome.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIP if outcome.skipped else 0)
