"""Where the supervisor has too little to work with, the program runs as it would without us: with its own
exit code, output and limits, unrecorded and with a word about it; with --strict it does not run."""
import os
import resource
import shutil
import signal

import harness
from harness import TrainprofTest

# Starts a process of its own, and says which limits it has.
PROGRAM = ["sh", "-c", "ulimit -n; ulimit -Hn; /bin/echo output; exit 42"]
NOBODY = 54321  # a user without processes


class LimitsTest(TrainprofTest):
    def both(self, limit, *flags, **options):
        """The program alone, and under trainprof; `limit` is called in the process that becomes it."""
        folder = self.path(f"run-{len(os.listdir(self.cwd))}")
        plain = self.run_plain(PROGRAM, preexec_fn=limit, **options)
        recorded = self.trainprof("run", *flags, "-o", folder, "--", *PROGRAM, preexec_fn=limit,
                                  **options)
        return plain, recorded, folder

    def assert_same(self, plain, recorded):
        self.assertEqual((recorded.returncode, recorded.stdout), (plain.returncode, plain.stdout),
                         recorded.stderr)

    def note(self, result):
        """The one line that says that nothing is recorded, or none."""
        lines = [line for line in result.stderr.decode().splitlines() if "not recording: " in line]
        self.assertLessEqual(len(lines), 1)
        return lines[0] if lines else None


class Descriptors(LimitsTest):
    def test_with_any_number_of_descriptors_the_program_runs(self):
        unrecorded = []
        for number in range(4, 41):  # with three no program loads that has a library
            with self.subTest(descriptors=number):
                limit = (number, number)
                plain, recorded, folder = self.both(
                    lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit))
                self.assertEqual(plain.returncode, 42)
                self.assert_same(plain, recorded)
                if note := self.note(recorded):
                    unrecorded.append(number)
                    self.assertIn("file descriptors", note)
                    self.assertFalse(os.path.exists(folder))
                else:
                    self.assertTrue(os.path.exists(os.path.join(folder, "manifest.json")))
                    self.assertIn(b"in " + folder.encode(), recorded.stderr)
        self.assertEqual(unrecorded, list(range(4, unrecorded[-1] + 1)))

    def test_strict_ends_before_the_program_starts(self):
        limit = (6, 6)
        _, recorded, _ = self.both(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limit), "--strict")
        self.assertEqual(recorded.returncode, 125)
        self.assertIn("it needs 16 free file descriptors and finds 3", self.note(recorded))
        self.assertEqual(recorded.stdout, b"")

    def test_what_may_be_raised_is_raised_for_us_and_not_for_the_program(self):
        plain, recorded, folder = self.both(
            lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 100)))
        self.assertEqual(plain.stdout, b"6\n100\noutput\n")
        self.assert_same(plain, recorded)
        self.assertIsNone(self.note(recorded))
        self.assertTrue(os.path.exists(os.path.join(folder, "manifest.json")))

    def test_descriptors_in_use_count(self):
        def fill():
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
            while True:
                try:
                    os.set_inheritable(os.dup(0), True)
                except OSError:
                    break
            os.closerange(60, 64)
        plain, recorded, _ = self.both(fill, close_fds=False)
        self.assertEqual(plain.returncode, 42)
        self.assert_same(plain, recorded)
        self.assertRegex(self.note(recorded), r"finds \d:")


class Processes(LimitsTest):
    def limit(self, number):
        def become():
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            resource.setrlimit(resource.RLIMIT_NPROC, (number, number))
        return become

    def numbers(self):
        # A user who has processes already may start none below their number.
        return range(0, 17) if os.geteuid() == 0 else (0,)

    def setUp(self):
        super().setUp()
        os.chmod(self.folder, 0o755)
        os.chmod(self.cwd, 0o777)
        # The build may lie where that user may not go: in root's home.
        self.program = shutil.copy(harness.TRAINPROF, self.folder)
        lib = os.path.join(self.folder, "reachable")
        os.mkdir(lib)
        shutil.copy(os.path.join(self.lib_dir, "libtrainprof_injection.so"), lib)
        self.lib_dir = lib

    def trainprof(self, *arguments, **options):
        return self.run_plain([self.program, *arguments], **options)

    def test_with_any_number_of_processes_the_program_runs(self):
        unrecorded = []
        for number in self.numbers():
            with self.subTest(processes=number):
                plain, recorded, folder = self.both(self.limit(number))
                self.assert_same(plain, recorded)
                if note := self.note(recorded):
                    unrecorded.append(number)
                    self.assertIn("it needs 9 more processes", note)
                    self.assertFalse(os.path.exists(folder))
                else:
                    self.assertIn(b"in " + folder.encode(), recorded.stderr)
        self.assertIn(0, unrecorded)
        if os.geteuid() == 0:
            self.assertEqual(plain.returncode, 42)
            self.assertNotIn(16, unrecorded)

    def test_strict_ends_before_the_program_starts(self):
        _, recorded, folder = self.both(self.limit(0), "--strict")
        self.assertEqual(recorded.returncode, 125)
        self.assertIn("it needs 9 more processes and can start 0", self.note(recorded))
        self.assertEqual(recorded.stdout, b"")
        self.assertFalse(os.path.exists(folder))

    def test_what_cannot_be_executed_has_its_exit_code_there_too(self):
        for program, code in (("./absent", 127), ("/etc/passwd", 126)):
            result = self.trainprof("run", "--", program, preexec_fn=self.limit(0))
            self.assertEqual(result.returncode, code, result.stderr)

    def test_the_program_finds_its_signals_as_they_were(self):
        def become():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK,
                                   {signal.SIGUSR1, signal.SIGCHLD, signal.SIGRTMIN})
            self.limit(0)()
        show = ["grep", "^S[ih][gd][^Q]", "/proc/self/status"]
        plain = self.run_plain(show, preexec_fn=become)
        self.assertEqual(self.trainprof("run", "--", *show, preexec_fn=become).stdout, plain.stdout)


if __name__ == "__main__":
    harness.main()
