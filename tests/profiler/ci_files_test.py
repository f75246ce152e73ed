"""docs/ci: the workflow for GitHub and the job for GitLab are valid, and do what they say: their commands are run as the
servers run them, on the reference trainer's Python twin, which trains on the CPU."""
import json
import os
import re
import shutil
import subprocess
import sys

import harness
import published
from harness import TrainprofTest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
TRAINER = os.path.join(ROOT, "instrumented_trainer", "train.py")
SCHEMAS = {"github.yml": "github-workflows.json", "gitlab.yml": "gitlab-ci.json"}
# Decoding is a quarter of a step that decodes by itself; two workers hide it, on a machine that does more as well.
TRAIN = "train.py --steps 40 --batch 16 --samples 320 --stored-size 224 --data ../data --workers %d"
POLICY = """schema = 1
[rules.TP101]
severity = "error"
threshold = 0.12
[budgets.input_wait]
max = "12%"
"""


def load(name):
    """The file as JSON would say it. In YAML 1.1, which PyYAML reads, `on` is a truth value; in that of the servers a text."""
    script = ("import json, sys, yaml\n"
              "words = lambda x: {'on' if k is True else k: words(v) for k, v in x.items()} if isinstance(x, dict) else x\n"
              "print(json.dumps(words(yaml.safe_load(open(sys.argv[1], encoding='utf-8')))))")
    path = os.path.join(ROOT, "docs", "ci", name)
    return json.loads(subprocess.run([harness.python_with("yaml"), "-c", script, path], capture_output=True, text=True,
                                     check=True).stdout)


def github_steps():
    return load("github.yml")["jobs"]["trainprof"]["steps"]


class CiSchemas(TrainprofTest):
    """By the schemas that SchemaStore and GitLab publish."""

    def wrong(self, name, document):
        with open(self.path("document.json"), "w", encoding="utf-8") as file:
            json.dump(document, file)
        return published.valid(published.fetch(SCHEMAS[name])[0], self.path("document.json"))

    def test_they_are_valid(self):
        for name in SCHEMAS:
            self.assertEqual(self.wrong(name, load(name)), "")

    def test_a_fault_would_be_found(self):
        workflow, job = load("github.yml"), load("gitlab.yml")
        del workflow["jobs"]["trainprof"]["runs-on"]
        self.assertNotEqual(self.wrong("github.yml", workflow), "")
        job["trainprof"]["artifacts"]["reports"] = ["trainprof.xml"]
        self.assertNotEqual(self.wrong("gitlab.yml", job), "")


class CiStory(TrainprofTest):
    """A repository whose training is judged; the data set is drawn once for the class."""

    def setUp(self):
        super().setUp()
        shutil.copy(TRAINER, self.path("train.py"))
        self.run_plain(["git", "init", "-q", "."])
        self.put(".trainprof.toml", POLICY)
        os.symlink(self.data, os.path.join(self.folder, "data"))
        folders = [os.path.dirname(harness.TRAINPROF), os.path.dirname(os.environ["TRAINPROF_TEST_TORCH"])]
        self.variables = self.environment(
            PATH=os.pathsep.join([*folders, os.environ["PATH"]]), TRAINPROF="trainer.whl", NO_COLOR=None,
            GITHUB_STEP_SUMMARY=self.path("summary.md"), GITHUB_WORKSPACE=self.cwd, CI="true")
        # The line that waits for the loader.
        with open(TRAINER, encoding="utf-8") as file:
            self.loader_line = next(i for i, line in enumerate(file, 1) if "next(self.batches)" in line)

    @classmethod
    def setUpClass(cls):
        cls.data = harness.tempfile.mkdtemp(prefix="trainprof-data-")
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)

    def put(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def github(self, workers, *names):
        """The steps of those names, as a runner runs them; the first exit code that is not 0, and what was said."""
        said = ""
        steps = {step["name"]: step["run"] for step in github_steps() if "run" in step}
        for name in names:
            done = self.run_plain(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[name]],
                                  env={**self.variables, "TRAIN": TRAIN % workers})
            said += (done.stdout + done.stderr).decode()
            if done.returncode != 0:
                return done.returncode, said
        return 0, said

    def check(self):
        """The exit code of the step that checks what was recorded last, and its words."""
        return self.github(0, "Check")

    def test_the_gate_turns_red_with_the_regression_and_green_with_its_suppression(self):
        code, said = self.github(2, "Record", "Check")
        self.assertEqual(code, 0, said)
        self.assertIn("PASS", said)
        self.assertIn("trainprof", self.read("summary.md").decode())
        self.assertEqual(self.trainprof("baseline", "create", "base.json", "recording").returncode, 0)

        code, said = self.github(0, "Record", "Check")
        self.assertEqual(code, 1, said)
        self.assertRegex(said, rf"(?m)^::error file=train\.py,line={self.loader_line},.*TP101")
        self.assertIn("TP101", self.read("summary.md").decode())
        self.assertIn("Input wait", self.read("trainprof.html").decode())
        result = json.loads(self.read("trainprof.sarif"))["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual((place["artifactLocation"]["uri"], place["region"]["startLine"]), ("train.py", self.loader_line))

        self.suppress_by_policy()
        self.suppress_in_the_source()
        self.compare_with_another_machine()
        self.damage()

    def suppress_by_policy(self):
        without_budget = POLICY.split("[budgets")[0]
        entry = "[[suppress]]\nrule = 'TP101'\nmatch = '%s'\nreason = 'issue 12'\nexpires = %s\n"
        for match, day, expected in (("train.py", "2999-01-01", 0), (f"train.py:{self.loader_line}", "2999-01-01", 0),
                                     ("train.py", "2020-01-01", 1), ("other.py", "2999-01-01", 1)):
            with self.subTest(match, day=day):
                self.put(".trainprof.toml", without_budget + entry % (match, day))
                code, said = self.check()
                self.assertEqual(code, expected, said)
                if day == "2020-01-01":
                    self.assertRegex(said, r"expired|2020-01-01")
        # What is suppressed is a finding; a budget is a limit all the same.
        self.put(".trainprof.toml", POLICY + entry % ("train.py", "2999-01-01"))
        self.assertEqual(self.check()[0], 1)

    def suppress_in_the_source(self):
        self.put(".trainprof.toml", POLICY.split("[budgets")[0])
        source = self.read("train.py").decode().split("\n")
        source[self.loader_line - 1] += "  # trainprof: ignore[TP101] a demo"
        self.put("train.py", "\n".join(source))
        code, said = self.check()
        self.assertEqual(code, 0, said)
        self.assertIn("ignored", said)
        shutil.copy(TRAINER, self.path("train.py"))
        self.assertEqual(self.check()[0], 1)

    def compare_with_another_machine(self):
        self.put(".trainprof.toml", POLICY)
        slower = self.trainprof("check", "recording", "--baseline", "base.json", "--fail-on", "never")
        self.assertEqual(slower.returncode, 1, slower.stdout)
        text = self.read("base.json").decode()
        processor = re.search(r'"processor",\s*"([^"]+)"', text)
        self.assertTrue(processor, text[:2000])
        self.put("other.json", text.replace(processor.group(1), "another processor"))
        self.put(".trainprof.toml", POLICY.split("[budgets")[0])
        other = self.trainprof("check", "recording", "--baseline", "other.json", "--fail-on", "never")
        self.assertEqual(other.returncode, 3, other.stdout)
        self.assertIn(b"processor of the host: another processor in A", other.stdout)

    def damage(self):
        """Each file of the recording in turn gone or filled with something else: never green. The clock's samples may end
        early, as those of a run that was killed do; the launch's file is for those who record."""
        self.put(".trainprof.toml", "schema = 1\n[check]\nfail-on = 'never'\n")
        self.assertEqual(self.check()[0], 0)
        files = [os.path.join(folder, name) for folder, _, names in os.walk(self.path("recording")) for name in names
                 if name != "launch"]
        self.assertGreater(len(files), 5)
        for path in files:
            with open(path, "rb") as file:
                whole = file.read()
            damages = [b"\xff" * len(whole), b""]
            if path.endswith((".tpz", ".tphz", ".json")):
                damages += [whole[:len(whole) // 2], whole[:200] + b"\0" * (len(whole) - 200), None]
            for damaged in damages:
                with self.subTest(path, damaged=damaged and damaged[-5:]):
                    if damaged is None:
                        os.unlink(path)
                    else:
                        with open(path, "wb") as file:
                            file.write(damaged)
                    code, said = self.check()
                    self.assertIn(code, (3, 4), said)
            with open(path, "wb") as file:
                file.write(whole)
        self.assertEqual(self.check()[0], 0)

    def test_gitlabs_job_records_and_checks_in_one(self):
        job = load("gitlab.yml")["trainprof"]
        self.assertEqual(len(job["script"]), 1)
        script = ["sh", "-ec", job["script"][0]]
        for workers, expected in ((2, 0), (0, 1)):
            done = self.run_plain(script, env={**self.variables, "TRAIN": TRAIN % workers})
            self.assertEqual(done.returncode, expected, done.stderr)
            for path in [*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()]:
                self.assertTrue(self.read(path), path)
        issues = json.loads(self.read("gl-code-quality-report.json"))
        self.assertIn(("train.py", self.loader_line),
                      [(issue["location"]["path"], issue["location"]["lines"]["begin"]) for issue in issues])

    def test_what_they_install_is_what_the_scripts_make(self):
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            version = re.search(r"project\(trainprof VERSION ([0-9.]+)", file.read()).group(1)
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
            wheel = re.search(r"dist/(trainprof-\S+\.whl)", file.read()).group(1)
        self.assertTrue(wheel.startswith(f"trainprof-{version}-"))
        workflow, job = load("github.yml"), load("gitlab.yml")["trainprof"]
        for variables, lines in ((workflow["env"], github_steps()[2]["run"].splitlines()),
                                 (job["variables"], job["before_script"])):
            self.assertEqual(os.path.basename(variables["TRAINPROF"]), wheel)
            self.assertEqual(lines[-1], 'pip install "$TRAINPROF"')


if __name__ == "__main__":
    if "CiSchemas" in sys.argv:
        published.fetch_or_skip(*SCHEMAS.values())
    elif subprocess.run([os.environ["TRAINPROF_TEST_TORCH"], "-c", "import torch"], capture_output=True, check=False).returncode:
        print(f"Skipped: {os.environ['TRAINPROF_TEST_TORCH']} has no PyTorch")
        sys.exit(published.SKIPPED)
    harness.main()
