"""Where `trainprof run` records: names, collisions, one folder for the ranks of one launch."""
import json
import os
import shutil
import signal
import subprocess

import harness
from harness import TIMEOUT_S, TrainprofTest

# What torchrun does that matters here: one process a rank with these variables, all children of
# one launcher that ends when they have.
FAKE_TORCHRUN = """
import os, subprocess, sys
ranks = int(sys.argv[1])
program = sys.argv[2:]
attempts = int(os.environ.pop("ATTEMPTS", "1"))
for attempt in range(attempts):
    processes = []
    for rank in range(ranks):
        env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
                   LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="localhost",
                   MASTER_PORT=str(29400 + attempt), TORCHELASTIC_RESTART_COUNT=str(attempt))
        env.setdefault("TORCHELASTIC_RUN_ID", "none")
        processes.append(subprocess.Popen(program, env=env))
    code = max(process.wait() for process in processes)
sys.exit(code)
"""
SAY_FOLDER = ["sh", "-c", 'echo "$RANK $TRAINPROF_DIR"']


class Names(TrainprofTest):
    def name_with(self, **variables):
        before = set(self.run_folders())
        result = self.trainprof("run", "--", "true", env=self.environment(**variables))
        self.assertEqual(result.returncode, 0)
        new = set(self.run_folders()) - before
        self.assertEqual(len(new), 1, new)
        return os.path.basename(new.pop())

    def test_default_is_the_time(self):
        self.assertRegex(self.name_with(), r"^trainprof-\d{8}T\d{6}Z$")

    def test_a_job_names_its_runs(self):
        self.assertEqual(self.name_with(SLURM_JOB_ID="4711"), "trainprof-4711")
        self.assertEqual(self.name_with(TORCHELASTIC_RUN_ID="my/job 1"), "trainprof-my_job_1")
        self.assertRegex(self.name_with(TORCHELASTIC_RUN_ID="none"), r"^trainprof-\d{8}T")

    def test_a_taken_name_gets_a_number(self):
        names = [self.name_with(SLURM_JOB_ID="7") for _ in range(3)]
        self.assertEqual(names, ["trainprof-7", "trainprof-7-2", "trainprof-7-3"])

    def test_eight_starts_at_once_get_eight_folders(self):
        environment = self.environment(TORCHELASTIC_RUN_ID="same")
        processes = [self.start("run", "-q", "--", "sh", "-c", "echo $TRAINPROF_DIR", env=environment)
                     for _ in range(8)]
        folders = {process.communicate(timeout=TIMEOUT_S)[0] for process in processes}
        self.assertEqual(len(folders), 8)
        self.assertEqual(len(self.run_folders()), 8)
        self.assertEqual([n for n in os.listdir(self.cwd) if n.startswith(".")], [])


class FolderTest(TrainprofTest):
    def folder_with(self, output):
        result = self.trainprof("run", "-q", "-o", output, "--", "printenv", "TRAINPROF_DIR")
        self.assertEqual(result.returncode, 0, result.stderr)
        return os.path.relpath(result.stdout.decode().strip(), self.cwd)

    def contents(self, folder):
        """All files below a folder of the current one."""
        files = {}
        for at, _, names in os.walk(self.path(folder)):
            for name in names:
                path = os.path.join(at, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, self.path(folder))] = file.read()
        return files

    def check_refused(self, output, *words, flags=()):
        """The program must not start: what is there would pass for this run's recording."""
        result = self.trainprof("run", "-o", output, *flags, "--", "touch", "started")
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertFalse(os.path.exists(self.path("started")))
        for word in (*words, f"-o {output}", "not started"):
            self.assertIn(word, result.stderr.decode())
        self.assertEqual([name for name in os.listdir(self.cwd) if name.startswith(".")], [])


class Output(FolderTest):
    def test_a_new_folder_and_its_parents_are_made(self):
        self.assertEqual(self.folder_with("a/b/run/"), "a/b/run")

    def test_an_earlier_recording_is_refused(self):
        self.assertEqual(self.folder_with("run"), "run")
        before = self.contents("run")
        self.check_refused("run", "earlier recording", "--force")
        self.check_refused("run/", "earlier recording")
        self.assertEqual(self.contents("run"), before)
        self.assertEqual(sorted(os.listdir(self.cwd)), ["run"])

    def test_it_is_refused_also_where_nothing_could_be_recorded(self):
        self.assertEqual(self.folder_with("run"), "run")
        result = self.trainprof("run", "-o", "run", "--", "touch", "started",
                                env=self.environment(TRAINPROF_LIB_DIR="/nowhere"))
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_an_empty_folder_of_the_user_is_used_as_it_is(self):
        os.mkdir(self.path("mine"), 0o700)
        inode = os.stat(self.path("mine")).st_ino
        self.assertEqual(self.folder_with("mine"), "mine")
        self.assertEqual(os.stat(self.path("mine")).st_ino, inode)
        self.check_refused("mine", "earlier recording")

    def test_a_folder_with_other_files_is_refused(self):
        os.mkdir(self.path("results"))
        open(self.path("results/notes"), "wb").close()
        self.check_refused("results", "other files")
        self.check_refused("results", "not a recording", flags=["--force"])
        self.assertEqual(os.listdir(self.path("results")), ["notes"])
        self.assertEqual(self.folder_with("results/run"), "results/run")

    def test_a_file_of_that_name_is_refused(self):
        open(self.path("taken"), "wb").close()
        self.check_refused("taken", "not a folder")
        self.check_refused("taken", "not a folder", flags=["--force"])
        self.assertEqual(self.read("taken"), b"")

    def test_a_program_that_cannot_start_leaves_the_users_folder_empty(self):
        os.mkdir(self.path("mine"))
        self.assertEqual(self.trainprof("run", "-o", "mine", "--", "./nothing").returncode, 127)
        self.assertEqual(os.listdir(self.path("mine")), [])


class Force(FolderTest):
    def forced(self, *program, **options):
        return self.trainprof("run", "-q", "-o", "run", "--force", "--", *program, **options)

    def test_a_recording_is_replaced(self):
        self.assertEqual(self.folder_with("run"), "run")
        result = self.forced("true", "second")
        self.assertEqual((result.returncode, result.stderr), (0, b""))
        self.assertEqual(json.loads(self.read("run/manifest.json"))["command"], ["true", "second"])
        self.assertEqual(os.listdir(self.cwd), ["run"])

    def test_a_new_name_needs_no_replacing(self):
        self.assertEqual(self.forced("true").returncode, 0)
        self.assertEqual(os.listdir(self.cwd), ["run"])

    def test_it_needs_a_name(self):
        result = self.trainprof("run", "--force", "--", "true")
        self.assertEqual(result.returncode, 125)
        self.assertIn(b"-o DIR", result.stderr)

    def test_what_is_not_ours_keeps_its_folder(self):
        for name, make in (("notes.txt", lambda path: open(path, "wb").close()),
                           ("rank-00000/model.pt", lambda path: open(path, "wb").close()),
                           ("link.tps", lambda path: os.symlink("/etc/hostname", path)),
                           ("sub", os.mkdir)):
            with self.subTest(name):
                shutil.rmtree(self.path("run"), ignore_errors=True)
                self.assertEqual(self.folder_with("run"), "run")
                os.makedirs(os.path.dirname(self.path("run/" + name)), exist_ok=True)
                make(self.path("run/" + name))
                before = self.contents("run")
                self.check_refused("run", name, flags=["--force"])
                self.assertEqual(self.contents("run"), before)

    def test_a_link_to_a_recording_is_not_followed(self):
        self.assertEqual(self.folder_with("real"), "real")
        os.symlink("real", self.path("run"))
        before = self.contents("real")
        self.check_refused("run", "symbolic link", flags=["--force"])
        self.assertEqual(self.contents("real"), before)

    def test_a_run_that_goes_on_is_not_replaced(self):
        process = self.start("run", "-q", "-o", "run", "--", "sh", "-c", "touch on; sleep 60")
        harness.wait_until(lambda: os.path.exists(self.path("on")), "the first run")
        self.check_refused("run", "still going on", flags=["--force"])
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        harness.wait_until(lambda: self.forced("true").returncode == 0, "the run to be over")

    def test_another_machines_run_without_an_end_is_not_replaced(self):
        self.assertEqual(self.folder_with("run"), "run")
        manifest = json.loads(self.read("run/manifest.json"))
        manifest.update(host="another-machine", end_unix_ns=None)
        with open(self.path("run/manifest.json"), "w", encoding="utf-8") as file:
            json.dump(manifest, file)
        self.check_refused("run", "another-machine", flags=["--force"])

    def test_a_program_that_cannot_start_gives_the_old_one_back(self):
        self.assertEqual(self.folder_with("run"), "run")
        before = self.contents("run")
        self.assertEqual(self.forced("./nothing").returncode, 127)
        self.assertEqual(self.contents("run"), before)
        self.assertEqual(os.listdir(self.cwd), ["run"])

    def test_strict_gives_the_old_one_back_where_nothing_can_be_recorded(self):
        self.assertEqual(self.folder_with("run"), "run")
        before = self.contents("run")
        result = self.trainprof("run", "--strict", "--force", "-o", "run", "--", "true",
                                env=self.environment(NVTX_INJECTION64_PATH="/another/tool.so"))
        self.assertEqual(result.returncode, 125, result.stderr)
        self.assertEqual(self.contents("run"), before)
        self.assertEqual(os.listdir(self.cwd), ["run"])

    def test_an_unrecorded_run_leaves_no_earlier_recording(self):
        self.assertEqual(self.folder_with("run"), "run")
        result = self.forced("true", env=self.environment(TRAINPROF_LIB_DIR="/nowhere"))
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"not recording", result.stderr)
        self.assertEqual(os.listdir(self.cwd), [])


class Ranks(TrainprofTest):
    def launch(self, ranks, *flags, attempts=1, **variables):
        """`torchrun --no-python trainprof run`: (folder of each rank, stderr)."""
        torchrun = self.script("torchrun.py", FAKE_TORCHRUN)
        result = subprocess.run(
            [*torchrun, str(ranks), harness.TRAINPROF, "run", *flags, "--", *SAY_FOLDER],
            capture_output=True, cwd=self.cwd,
            env=self.environment(ATTEMPTS=str(attempts), **variables), timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = [line.split(" ", 1) for line in result.stdout.decode().splitlines()]
        self.assertEqual(sorted(int(rank) for rank, _ in lines), sorted([*range(ranks)] * attempts))
        return {folder for _, folder in lines}, result.stderr.decode()

    def test_a_stale_folder_stops_all_ranks(self):
        self.assertEqual(self.trainprof("run", "-q", "-o", "out", "--", "true").returncode, 0)
        torchrun = self.script("torchrun.py", FAKE_TORCHRUN)
        result = self.run_plain([*torchrun, "8", harness.TRAINPROF, "run", "-o", "out", "--",
                                 *SAY_FOLDER])
        self.assertEqual((result.returncode, result.stdout), (125, b""))
        self.assertEqual(sorted(os.listdir(self.cwd)), ["out", "torchrun.py"])

    def test_eight_ranks_replace_a_stale_folder_once(self):
        self.launch(8, "-o", "out")
        for _ in range(5):
            folders, stderr = self.launch(8, "-o", "out", "--force")
            self.assertEqual(folders, {self.path("out")})
            self.check_one_folder(folders, stderr, 8)
            self.assertEqual(sorted(os.listdir(self.cwd)), ["out", "torchrun.py"])

    def test_a_launchers_next_attempt_is_not_refused(self):
        folders, _ = self.launch(2, "-o", "out", attempts=2)
        self.assertEqual(folders, {self.path("out"), self.path("out-2")})

    def check_one_folder(self, folders, stderr, ranks):
        self.assertEqual(len(folders), 1, folders)
        names = [name for name in os.listdir(next(iter(folders))) if name.startswith("rank-")]
        self.assertEqual(sorted(names), [f"rank-{rank:05}" for rank in range(ranks)])
        self.assertEqual(stderr.count("dropped:"), 1, stderr)  # one card, of rank 0

    def test_eight_ranks_share_a_folder(self):
        self.check_one_folder(*self.launch(8), 8)

    def test_the_next_launch_gets_another(self):
        first, _ = self.launch(4)
        second, stderr = self.launch(8)
        self.check_one_folder(second, stderr, 8)
        self.assertFalse(first & second)

    def test_a_job_gives_the_name_and_a_number_to_its_next_launch(self):
        first, _ = self.launch(2, SLURM_JOB_ID="99")
        second, stderr = self.launch(8, SLURM_JOB_ID="99")
        self.assertEqual(first, {self.path("trainprof-99")})
        self.assertEqual(second, {self.path("trainprof-99-2")})
        self.check_one_folder(second, stderr, 8)

    def test_a_named_folder_is_shared_too(self):
        folders, stderr = self.launch(8, "-o", "out")
        self.assertEqual(folders, {self.path("out")})
        self.check_one_folder(folders, stderr, 8)

    def test_a_named_empty_folder_is_shared_too(self):
        os.mkdir(self.path("out"))
        folders, stderr = self.launch(8, "-o", "out")
        self.assertEqual(folders, {self.path("out")})
        self.check_one_folder(folders, stderr, 8)

    def test_around_torchrun_all_ranks_see_the_one_folder(self):
        torchrun = self.script("torchrun.py", FAKE_TORCHRUN)
        result = self.trainprof("run", "--", *torchrun, "8", *SAY_FOLDER)
        folders = {line.split(" ", 1)[1] for line in result.stdout.decode().splitlines()}
        self.assertEqual(folders, {self.the_run_folder()})
        self.assertEqual(result.stderr.count(b"dropped:"), 1)


if __name__ == "__main__":
    harness.main()
