"""Who may read a recording, and which secrets are not in it."""
import glob
import json
import os
import signal
import stat
import subprocess
import unittest

import harness
from harness import TIMEOUT_S, TRAINPROF, TrainprofTest

NVTX_PROGRAM = os.environ.get("TRAINPROF_TEST_NVTX", "")
CUDA_PROGRAM = os.environ.get("TRAINPROF_TEST_CUDA", "")
VIRTUAL_GPU = os.environ.get("TRAINPROF_TEST_VIRTUAL_GPU", "")
SECRET = "s3cr3tV4lu3"


class Access(TrainprofTest):
    def modes(self, folder):
        """Mode of the folder itself (".") and of all below it."""
        modes = {".": stat.S_IMODE(os.stat(folder).st_mode)}
        for at, folders, files in os.walk(folder):
            for name in folders + files:
                path = os.path.join(at, name)
                kind = stat.S_IFMT(os.lstat(path).st_mode) == stat.S_IFDIR
                modes[os.path.relpath(path, folder) + "/" * kind] = stat.S_IMODE(os.stat(path).st_mode)
        return modes

    def check_modes(self, folder, folder_mode, file_mode):
        modes = self.modes(folder)
        for name, mode in modes.items():
            wanted = folder_mode if name == "." or name.endswith("/") else file_mode
            self.assertEqual(oct(mode), oct(wanted), name)
        return modes

    def record(self, umask, *flags, program=(NVTX_PROGRAM or "true",), **variables):
        result = subprocess.run([TRAINPROF, "run", "-q", "-o", "run", *flags, "--", *program],
                                cwd=self.cwd, env=self.environment(**variables),
                                capture_output=True, timeout=TIMEOUT_S,
                                preexec_fn=lambda: os.umask(umask))
        self.assertEqual(result.returncode, 0, result.stderr)
        return self.path("run")

    def test_only_the_owner_reads_it_whatever_the_umask(self):
        for umask in (0o000, 0o022, 0o077, 0o177):
            for rank in (None, "0"):
                with self.subTest(umask=oct(umask), rank=rank):
                    folder = self.record(umask, "--force", RANK=rank)
                    modes = self.check_modes(folder, 0o700, 0o600)
                    self.assertIn("run.ctl", modes)
                    if NVTX_PROGRAM:
                        self.assertTrue(any(name.endswith(".tpz") for name in modes), modes)

    def test_share_lets_the_group_read_it(self):
        for umask in (0o000, 0o022, 0o077):
            for rank in (None, "0"):
                with self.subTest(umask=oct(umask), rank=rank):
                    folder = self.record(umask, "--force", "--share", RANK=rank)
                    self.check_modes(folder, 0o750, 0o640)

    def test_the_groups_folder_hands_its_group_down(self):
        os.chmod(self.cwd, 0o2775)
        folder = self.record(0o022, "--share")
        self.assertEqual(oct(stat.S_IMODE(os.stat(folder).st_mode)), "0o2750")

    def test_an_empty_folder_of_the_user_becomes_private(self):
        os.mkdir(self.path("run"))
        os.chmod(self.path("run"), 0o755)
        self.check_modes(self.record(0o022), 0o700, 0o600)

    def test_and_is_as_before_when_the_program_cannot_start(self):
        os.mkdir(self.path("run"))
        os.chmod(self.path("run"), 0o755)
        self.assertEqual(self.trainprof("run", "-o", "run", "--", "./nothing").returncode, 127)
        self.assertEqual(self.modes(self.path("run")), {".": 0o755})

    def test_the_programs_own_files_keep_their_umask(self):
        self.record(0o027, program=("sh", "-c", "umask; touch file"))
        self.assertEqual(oct(stat.S_IMODE(os.stat(self.path("file")).st_mode)), "0o640")

    @unittest.skipUnless(NVTX_PROGRAM, "no collector was built")
    def test_it_is_private_while_it_grows_and_after_a_kill(self):
        script = self.script("loop.py", "import os, subprocess, sys, time\n"
                             "subprocess.run([sys.argv[1]])\nopen('on', 'w')\ntime.sleep(60)\n")
        process = self.start("run", "-q", "-o", "run", "--", *script, NVTX_PROGRAM,
                             preexec_fn=lambda: os.umask(0))
        harness.wait_until(lambda: os.path.exists(self.path("on")), "the program")
        modes = self.check_modes(self.path("run"), 0o700, 0o600)
        self.assertTrue(any(name.endswith(".tps") for name in modes), modes)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self.trainprof("report", "run", preexec_fn=lambda: os.umask(0))
        self.check_modes(self.path("run"), 0o700, 0o600)

    def launches(self):
        with open(self.path("progress"), "rb") as file:
            return int.from_bytes(file.read(8), "little")

    @unittest.skipUnless(CUDA_PROGRAM, "no virtual GPU was built")
    def test_buffers_of_the_gpu_are_private_too(self):
        for umask, flags, folder_mode, file_mode in ((0, (), 0o700, 0o600),
                                                     (0o077, ("--share",), 0o750, 0o640)):
            folder = f"run-{umask}"
            with open(self.path("progress"), "wb") as file:
                file.truncate(8 * (1 + (1 << 20)))  # cuda_program.h
            process = self.start("run", "-q", "-o", folder, *flags, "--", CUDA_PROGRAM, "killed",
                                 self.path("progress"), preexec_fn=lambda: os.umask(umask),
                                 env=self.environment(LD_LIBRARY_PATH=VIRTUAL_GPU))
            # Made, and by a kernel's launch also opened to those who may read them.
            harness.wait_until(lambda: glob.glob(self.path(folder + "/*/*.slots"))
                               and self.launches() > 0, "the GPU's buffers")
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            self.check_modes(self.path(folder), folder_mode, file_mode)


class Secrets(TrainprofTest):
    def everything(self, folder):
        """All bytes of a recording."""
        text = b""
        for at, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(at, name), "rb") as file:
                    text += file.read()
        return text

    def record(self, *arguments, flags=()):
        program = (NVTX_PROGRAM or "true", *arguments)
        result = self.trainprof("run", "-o", "run", "--force", *flags, "--", *program)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stderr.decode()

    def test_secrets_of_the_command_line_are_nowhere(self):
        for arguments in (["--token", SECRET], [f"--api_key={SECRET}"], [f"HF_TOKEN={SECRET}"],
                          ["--password", SECRET], [f"https://me:{SECRET}@host/x"],
                          ["-H", f"Authorization: Bearer {SECRET}"]):
            with self.subTest(arguments):
                card = self.record(*arguments, "--tokenizer", "gpt2")
                stored = self.everything(self.path("run"))
                self.assertNotIn(SECRET.encode(), stored)
                self.assertIn(b"--tokenizer", stored)
                self.assertNotIn(SECRET, card)
                report = self.trainprof("report", "run", "--format", "json").stdout
                self.assertNotIn(SECRET.encode(), report)

    def test_the_program_gets_its_arguments_as_they_are(self):
        result = self.trainprof("run", "-q", "--", "echo", "--token", SECRET)
        self.assertEqual(result.stdout.decode(), f"--token {SECRET}\n")

    def test_no_command_line_leaves_the_programs_name(self):
        card = self.record("--lr", "0.12345", "train-data", flags=("--no-command-line",))
        stored = self.everything(self.path("run"))
        self.assertNotIn(b"0.12345", stored)
        self.assertNotIn(b"train-data", stored)
        self.assertNotIn("0.12345", card)
        command = json.loads(self.read("run/manifest.json"))["command"]
        self.assertEqual(command, [NVTX_PROGRAM or "true"])

    def test_values_of_the_environment_are_not_stored(self):
        result = self.trainprof("run", "-q", "-o", "run", "--", NVTX_PROGRAM or "true",
                                env=self.environment(HF_TOKEN=SECRET, MY_SETTING=SECRET))
        self.assertEqual(result.returncode, 0)
        self.assertNotIn(SECRET.encode(), self.everything(self.path("run")))


if __name__ == "__main__":
    harness.main()
