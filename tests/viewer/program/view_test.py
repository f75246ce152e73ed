"""`trainprof view` as a program: pictures without a display, what it says when it cannot, its flags."""
import os
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import unittest

import pictures
from pictures import GPU_SAMPLE, SAMPLE, TIMEOUT_S, TRAINPROF

DARK = bytes((0x1b, 0x1f, 0x26))  # the dark panel
LIGHT = bytes((0xfc, 0xfc, 0xfd))


class ViewTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="trainprof-view-")
        self.addCleanup(shutil.rmtree, self.folder)

    def view(self, *arguments, program=TRAINPROF, **changes):
        return subprocess.run([program, "view", *arguments], cwd=self.folder, text=True,
                              capture_output=True, timeout=TIMEOUT_S, check=False,
                              env=pictures.environment(self.folder, **changes))

    def picture(self, *arguments, size="640x400"):
        run = self.view(*arguments, "--screenshot", "view.png", "--size", size)
        self.assertEqual((run.returncode, run.stdout), (0, ""), run.stderr)
        self.assertEqual(os.listdir(self.folder), ["view.png"])
        return pictures.read_png(os.path.join(self.folder, "view.png"))


class Pictures(ViewTest):
    def test_of_a_recording_without_a_display(self):
        width, height, colours = self.picture(GPU_SAMPLE)
        self.assertEqual((width, height), (640, 400))
        self.assertGreater(len(colours), 50)
        self.assertIn(DARK, colours)
        self.assertLess(max(colours.values()), 640 * 400 * 0.9)

    def test_themes_differ(self):
        colours = self.picture(SAMPLE, "--theme", "light")[2]
        self.assertIn(LIGHT, colours)
        self.assertNotIn(DARK, colours)

    def test_the_same_command_gives_the_same_picture(self):
        first = self.picture(SAMPLE, "--finding", "1")
        self.assertEqual(self.picture(SAMPLE, "--finding", "1"), first)

    def test_a_finding_and_a_step_are_shown(self):
        whole = self.picture(SAMPLE)
        self.assertNotEqual(self.picture(SAMPLE, "--finding", "1"), whole)
        self.assertNotEqual(self.picture(SAMPLE, "--step", "30"), whole)

    def test_times_and_a_selection_are_shown(self):
        times = ("--from", "5s", "--to", "5.5s")
        part = self.picture(SAMPLE, *times)
        self.assertNotEqual(part, self.picture(SAMPLE))
        for what in ("name:forward", "5.1s..5.2s"):
            self.assertNotEqual(self.picture(SAMPLE, *times, "--select", what), part)
        self.assertNotEqual(self.picture(SAMPLE, "--select=name:forward"), self.picture(SAMPLE))
        self.picture("--select", "name:forward", SAMPLE, "--from=-1ms")

    def test_with_nothing_open(self):
        self.assertGreater(len(self.picture()[2]), 10)

    def test_a_link_stays_and_standard_output_is_a_file_like_any(self):
        os.symlink("real.png", os.path.join(self.folder, "link.png"))
        self.assertEqual(self.view(SAMPLE, "--screenshot", "link.png", "--size", "640x400").returncode, 0)
        self.assertEqual(os.readlink(os.path.join(self.folder, "link.png")), "real.png")
        with open(os.path.join(self.folder, "real.png"), "rb") as file:
            written = file.read()
        piped = subprocess.run([TRAINPROF, "view", SAMPLE, "--screenshot", "/dev/stdout", "--size", "640x400"],
                               cwd=self.folder, capture_output=True, timeout=TIMEOUT_S, check=True,
                               env=pictures.environment(self.folder))
        self.assertEqual(piped.stdout, written)

    def test_size_and_scale(self):
        self.assertEqual(self.picture(SAMPLE, "--scale", "2", size="800x500")[:2], (800, 500))


class Errors(ViewTest):
    def refuse(self, code, message, *arguments):
        run = self.view(*arguments)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertIn(message, run.stderr)
        self.assertTrue(run.stderr.startswith("trainprof view: "), run.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "view.png")))

    def test_usage(self):
        for size in ("big", "10x10", "640", "640x400x3", "99999x400", "-640x400"):
            self.refuse(2, "size", SAMPLE, "--screenshot", "view.png", f"--size={size}")
        self.refuse(2, "--theme", SAMPLE, "--theme", "blue")
        self.refuse(2, "--nonsense", SAMPLE, "--nonsense")
        self.refuse(2, "no option '--theem'. Did you mean '--theme'?", SAMPLE, "--theem", "dark")
        for flag, value in (("finding", 1), ("from", "1s"), ("select", "a"), ("rank", 0)):
            self.refuse(2, "need a PATH", f"--{flag}={value}", "--screenshot", "view.png")
        for flags, why in (
                (["--from", "soon"], "--from soon: write a time with its unit"),
                (["--to=7"], "--to 7: write a time with its unit"),
                (["--from=2s", "--to=1s"], "--from 2s is not before --to 1s"),
                (["--step=3", "--from=1s"], "give one of them"),
                (["--select=dur>long"], "write a duration"),
                (["--select=2ms..1ms"], "not after its start"),
                (["--select", " "], "what to search for"),
                (["--rank=first"], "--rank")):
            self.refuse(2, why, SAMPLE, "--screenshot", "view.png", *flags)

    def test_what_is_not_there(self):
        self.refuse(4, "no such file", "nowhere", "--screenshot", "view.png")
        self.refuse(2, "no step 9999", SAMPLE, "--step", "9999", "--screenshot", "view.png")
        self.refuse(2, "no finding 99", SAMPLE, "--finding", "99", "--screenshot", "view.png")
        self.refuse(2, "no rank 9", SAMPLE, "--rank=9", "--screenshot", "view.png")
        self.refuse(2, "nothing from 99.0 s", SAMPLE, "--from=99s", "--to=100s", "--screenshot", "view.png")
        self.refuse(2, "No event matches", SAMPLE, "--select=nobody", "--screenshot", "view.png")

    def test_a_folder_of_separate_traces(self):
        os.mkdir(os.path.join(self.folder, "two"))
        for name in ("first.json", "second.json"):
            with open(os.path.join(self.folder, "two", name), "w", encoding="utf-8") as file:
                file.write('[{"ph": "X", "name": "step", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]')
        self.refuse(2, "Name one of them", "two", "--screenshot", "view.png")

    def test_says_of_a_path_what_a_report_says(self):
        for name in ("empty", "two"):
            os.mkdir(os.path.join(self.folder, name))
        for name in ("two/first.json", "two/second.json"):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write('[{"ph": "X", "name": "step", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]')
        for path in ("nowhere", "empty", "two"):
            report = subprocess.run([TRAINPROF, "report", path], cwd=self.folder, text=True, capture_output=True,
                                    timeout=TIMEOUT_S, check=False)
            view = self.view(path, "--screenshot", "view.png")
            self.assertNotEqual(report.returncode, 0)
            self.assertEqual((view.returncode, view.stderr.replace("trainprof view:", "trainprof report:")),
                             (report.returncode, report.stderr))

    def test_what_is_no_trace(self):
        with open(os.path.join(self.folder, "bad.json"), "w", encoding="utf-8") as file:
            file.write("{")
        self.refuse(4, "bad.json", "bad.json", "--screenshot", "view.png")

    def test_a_picture_that_cannot_be_written(self):
        self.refuse(74, "no/such/view.png: cannot be written: the folder no/such does not exist", SAMPLE,
                    "--screenshot", "no/such/view.png")
        self.refuse(74, "it is a folder", SAMPLE, "--screenshot", self.folder)
        self.refuse(74, "/dev/full: writing failed after 0 bytes: No space left", SAMPLE, "--screenshot", "/dev/full")
        self.assertTrue(stat.S_ISCHR(os.stat("/dev/full").st_mode))

    def test_past_the_limit_on_file_sizes_nothing_stays(self):
        run = subprocess.run([TRAINPROF, "view", SAMPLE, "--screenshot", "view.png"], cwd=self.folder, text=True,
                             capture_output=True, timeout=TIMEOUT_S, check=False,
                             env=pictures.environment(self.folder),
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024)))
        self.assertEqual(run.returncode, 74, run.stderr)
        self.assertIn("ulimit -f", run.stderr)
        self.assertEqual(os.listdir(self.folder), [])

    def test_the_first_ctrl_c_ends_the_wait_for_a_fifo(self):
        os.mkfifo(os.path.join(self.folder, "fifo"))
        process = subprocess.Popen([TRAINPROF, "view", "fifo", "--screenshot", "view.png"], cwd=self.folder, text=True,
                                   stderr=subprocess.PIPE, env=pictures.environment(self.folder),
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
        self.addCleanup(process.kill)
        with open(os.path.join(self.folder, "fifo"), "wb"):  # returns when the viewer has it open
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=TIMEOUT_S)[1], "trainprof view: cancelled\n")
        self.assertEqual(process.returncode, 130)
        self.assertEqual(os.listdir(self.folder), ["fifo"])

    def test_no_display_for_a_window(self):
        self.refuse(1, "--screenshot", SAMPLE)


class CommandLine(ViewTest):
    def test_help_is_the_viewers(self):
        for arguments in (["view", "--help"], ["help", "view"]):
            run = subprocess.run([TRAINPROF, *arguments], text=True, capture_output=True,
                                 timeout=TIMEOUT_S, check=False)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn("--screenshot", run.stdout)
            self.assertIn("Usage: trainprof view", run.stdout)

    def test_an_absent_viewer_is_said_in_one_line(self):
        alone = os.path.join(self.folder, "trainprof")
        shutil.copy(TRAINPROF, alone)
        run = self.view(SAMPLE, program=alone, PATH="/nonexistent")
        self.assertEqual(run.returncode, 2)
        self.assertIn("scripts/install_packages.sh viewer", run.stderr)
        self.assertEqual(run.stderr.count("\n"), 1)

    def test_a_viewer_in_path_is_found(self):
        alone = os.path.join(self.folder, "trainprof")
        shutil.copy(TRAINPROF, alone)
        run = self.view("--help", program=alone, PATH=os.path.dirname(TRAINPROF))
        self.assertEqual(run.returncode, 0, run.stderr)


if __name__ == "__main__":
    unittest.main()
