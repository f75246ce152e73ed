"""Where `trainprof run` records: names, collisions, one folder for the ranks of one launch."""
import os
import subprocess

import harness
from harness import TIMEOUT_S, TrainprofTest

# What torchrun does that matters here: one process a rank with these variables, all children of
# one launcher that ends when they have.
FAKE_TORCHRUN = """
import os, subprocess, sys
ranks = int(sys.argv[1])
program = sys.argv[2:]
processes = []
for rank in range(ranks):
    env = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(ranks),
               LOCAL_WORLD_SIZE=str(ranks), MASTER_ADDR="localhost", MASTER_PORT="29400")
    env.setdefault("TORCHELASTIC_RUN_ID", "none")
    processes.append(subprocess.Popen(program, env=env))
sys.exit(max(process.wait() for process in processes))
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


class Output(TrainprofTest):
    def folder_with(self, output):
        result = self.trainprof("run", "-q", "-o", output, "--", "printenv", "TRAINPROF_DIR")
        self.assertEqual(result.returncode, 0, result.stderr)
        return os.path.relpath(result.stdout.decode().strip(), self.cwd)

    def test_a_new_folder_and_its_parents_are_made(self):
        self.assertEqual(self.folder_with("a/b/run/"), "a/b/run")

    def test_an_earlier_recording_is_left_alone(self):
        self.assertEqual(self.folder_with("run"), "run")
        before = {name: self.read("run/" + name) for name in os.listdir(self.path("run"))}
        self.assertEqual(self.folder_with("run"), "run-2")
        self.assertEqual(self.folder_with("run/"), "run-3")
        after = {name: self.read("run/" + name) for name in os.listdir(self.path("run"))}
        self.assertEqual(after, before)

    def test_an_empty_folder_of_the_user_is_used_as_it_is(self):
        os.mkdir(self.path("mine"), 0o700)
        inode = os.stat(self.path("mine")).st_ino
        self.assertEqual(self.folder_with("mine"), "mine")
        self.assertEqual(os.stat(self.path("mine")).st_ino, inode)
        self.assertEqual(self.folder_with("mine"), "mine-2")

    def test_a_folder_with_other_files_gets_the_recording_inside(self):
        os.mkdir(self.path("results"))
        open(self.path("results/notes"), "wb").close()
        self.assertRegex(self.folder_with("results"), r"^results/trainprof-\d{8}T\d{6}Z$")
        self.assertRegex(self.folder_with("results/."), r"^results/trainprof-\d{8}T\d{6}Z")

    def test_a_file_of_that_name_is_left_alone(self):
        open(self.path("taken"), "wb").close()
        self.assertEqual(self.folder_with("taken"), "taken-2")
        self.assertEqual(self.read("taken"), b"")

    def test_a_program_that_cannot_start_leaves_the_users_folder_empty(self):
        os.mkdir(self.path("mine"))
        self.assertEqual(self.trainprof("run", "-o", "mine", "--", "./nothing").returncode, 127)
        self.assertEqual(os.listdir(self.path("mine")), [])


class Ranks(TrainprofTest):
    def launch(self, ranks, *flags, **variables):
        """`torchrun --no-python trainprof run`: (folder of each rank, stderr)."""
        torchrun = self.script("torchrun.py", FAKE_TORCHRUN)
        result = subprocess.run(
            [*torchrun, str(ranks), harness.TRAINPROF, "run", *flags, "--", *SAY_FOLDER],
            capture_output=True, cwd=self.cwd, env=self.environment(**variables),
            timeout=TIMEOUT_S)
        self.assertEqual(result.returncode, 0, result.stderr)
        lines = dict(line.split(" ", 1) for line in result.stdout.decode().splitlines())
        self.assertEqual(sorted(lines, key=int), [str(rank) for rank in range(ranks)])
        return set(lines.values()), result.stderr.decode()

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
