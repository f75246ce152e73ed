"""What `cmake --install` makes, and what pip makes of a wheel, which is the same tree in a Python environment: it works
wherever it lies, without the build folder; Python starts our hooks when a run is recorded, and notices nothing else.

Environment: TRAINPROF_BUILD (the build folder), TRAINPROF_CMAKE, TRAINPROF_VERSION.
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD = os.environ["TRAINPROF_BUILD"]
TIMEOUT_S = 60
FOREIGN = ("TRAINPROF", "NVTX_INJECTION", "CUDA_INJECTION", "PYTHON", "RANK", "WORLD_SIZE", "SLURM_", "LC_", "LANG")
PACKAGES = "lib/python%d.%d/site-packages" % sys.version_info[:2]
STEPS = """
import time, trainprof
for i in range(21):
    trainprof.step()
    with trainprof.range("load batch"):
        time.sleep(0.002)
"""
# What a program sees of Python's start.
SEEN = "import sys; print(sorted(sys.modules), sys.path, sys.meta_path, sys.flags)"


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    kept.update(changes)
    return {name: value for name, value in kept.items() if value is not None}


def run(*command, cwd, expect=0, **changes):
    result = subprocess.run(command, cwd=cwd, env=environment(**changes), capture_output=True, text=True,
                            timeout=TIMEOUT_S, check=False)
    if result.returncode != expect:
        raise AssertionError("%s: exit %d\n%s%s" % (command, result.returncode, result.stdout, result.stderr))
    return result


def install(component, prefix):
    run(os.environ["TRAINPROF_CMAKE"], "--install", BUILD, "--component", component, "--prefix", prefix, cwd=BUILD)


def write(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Installed(unittest.TestCase):
    """One installation for all tests of a class; those that change it make a copy."""

    @classmethod
    def setUpClass(cls):
        cls.place = os.path.realpath(tempfile.mkdtemp(prefix="trainprof-install-"))
        cls.addClassCleanup(shutil.rmtree, cls.place, ignore_errors=True)
        cls.set_up_tree()

    def setUp(self):
        self.cwd = tempfile.mkdtemp(prefix="trainprof-cwd-", dir=self.place)

    def run_here(self, *command, **options):
        return run(*command, cwd=self.cwd, **options)

    def record(self, program, *command, **options):
        """`trainprof run` of a command; what its end card says."""
        shutil.rmtree(os.path.join(self.cwd, "run"), ignore_errors=True)
        return self.run_here(program, "run", "-o", "run", "--", *command, **options)

    def steps_of_the_run(self, program):
        report = json.loads(self.run_here(program, "report", "run", "--format", "json").stdout)
        return report["ranks"][0]["steps"]


class Prefix(Installed):
    """`cmake --install`, and then moved."""

    @classmethod
    def set_up_tree(cls):
        install("runtime", os.path.join(cls.place, "first"))
        cls.prefix = os.path.join(cls.place, "moved here")
        os.rename(os.path.join(cls.place, "first"), cls.prefix)
        cls.program = os.path.join(cls.prefix, "bin", "trainprof")

    def test_it_records_with_its_own_collector(self):
        code = STEPS + "import os; print(os.environ['NVTX_INJECTION64_PATH'], trainprof.__file__)"
        result = self.record(self.program, sys.executable, "-c", code)
        library = os.path.join(self.prefix, "lib")
        self.assertEqual(result.stdout, "%s %s\n" % (os.path.join(library, "libtrainprof_injection.so"),
                                                     os.path.join(library, "trainprof-python/trainprof/__init__.py")))
        self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")

    def test_it_looks_for_libraries_in_itself_and_the_system(self):
        for path in glob.glob(os.path.join(self.prefix, "bin/*")) + glob.glob(os.path.join(self.prefix, "lib/*.so")):
            dynamic = self.run_here("readelf", "-d", path).stdout
            for folders in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
                self.assertTrue(all(it.startswith("$ORIGIN") for it in folders.split(":")), (path, folders))

    def test_python_finds_the_program_beside_the_package(self):
        result = self.run_here(sys.executable, "-m", "trainprof", "--version",
                               PYTHONPATH=os.path.join(self.prefix, "lib/trainprof-python"))
        self.assertEqual(result.stdout, self.run_here(self.program, "--version").stdout)

    def test_the_viewer_is_found_with_its_demo(self):
        if not os.path.exists(os.path.join(BUILD, "bin/trainprof-viewer")):
            self.skipTest("no viewer was built")
        self.assertIn("--screenshot", self.run_here(self.program, "view", "--help").stdout)
        self.assertTrue(glob.glob(os.path.join(self.prefix, "share/trainprof/demo/*")))


def make_environment(place):
    """A virtual environment with what a wheel brings; its site-packages."""
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd="/")
    packages = os.path.join(place, PACKAGES)
    for component in ("runtime", "wheel"):
        install(component, os.path.join(packages, "trainprof"))
    os.mkdir(os.path.join(packages, "trainprof-%s.dist-info" % os.environ["TRAINPROF_VERSION"]))
    return packages


class InEnvironment(Installed):
    @classmethod
    def set_up_tree(cls):
        cls.venv = os.path.join(cls.place, "venv [1]")
        cls.packages = make_environment(cls.venv)
        cls.python = os.path.join(cls.venv, "bin/python")
        cls.program = os.path.join(cls.venv, "bin/trainprof")
        cls.package = os.path.join(cls.packages, "trainprof")


class Wheel(InEnvironment):
    """The program on PATH."""

    def test_only_one_program_comes_on_path(self):
        brought = {name for name in os.listdir(os.path.join(self.venv, "bin"))
                   if not name.lower().startswith(("python", "activate"))}
        self.assertEqual(brought, {"trainprof"})

    def test_it_is_found_by_path_and_by_links(self):
        version = self.run_here("trainprof", "--version", PATH=os.path.join(self.venv, "bin")).stdout
        self.assertIn(os.environ["TRAINPROF_VERSION"], version)
        os.symlink(self.program, os.path.join(self.cwd, "linked"))
        self.assertEqual(self.run_here("./linked", "--version").stdout, version)

    def other_layout(self, packages):
        """The launcher in a prefix of its own, and a program that says where it is in `packages`."""
        prefix = os.path.join(self.cwd, "prefix")
        os.makedirs(os.path.join(prefix, "bin"), exist_ok=True)
        shutil.copy(self.program, os.path.join(prefix, "bin"))
        if packages is not None:
            program = os.path.join(prefix, packages, "trainprof/bin/trainprof")
            write(program, '#!/bin/sh\necho "$0 $*"\n')
            os.chmod(program, 0o755)
        return os.path.join(prefix, "bin/trainprof"), prefix

    def test_every_layout_of_pip_is_known(self):
        for packages in (".", "lib64/python3.9/site-packages", "lib/python3/dist-packages",
                         "lib/python3.13/site-packages"):
            with self.subTest(packages):
                launcher, prefix = self.other_layout(packages)
                said = self.run_here(launcher, "run", "--", "two words").stdout.split(" ", 1)
                self.assertEqual(os.path.normpath(said[0]),
                                 os.path.normpath(os.path.join(prefix, packages, "trainprof/bin/trainprof")))
                self.assertEqual(said[1], "run -- two words\n")
                shutil.rmtree(prefix)

    def test_its_own_version_goes_first(self):
        for minor in range(9, 14):
            launcher, prefix = self.other_layout("lib/python3.%d/site-packages" % minor)
        about = "trainprof-%s.dist-info" % os.environ["TRAINPROF_VERSION"]
        os.mkdir(os.path.join(prefix, "lib/python3.11/site-packages", about))
        self.assertIn("/python3.11/", self.run_here(launcher).stdout)

    def test_without_its_package_it_says_so(self):
        launcher, _ = self.other_layout(None)
        self.assertIn("install it again", self.run_here(launcher, expect=70).stderr)

    def test_signals_and_environment_reach_the_program_as_they_are(self):
        code = ("import os\nprint([line for line in open('/proc/self/status') if line.startswith('SigIgn')], "
                "sorted(set(os.environ) - {'_'}))")
        script = os.path.join(self.cwd, "see.py")
        write(script, code)
        direct = [os.path.join(self.package, "bin/trainprof"), "run", "-q", "--force", "-o", "run", "--",
                  sys.executable, script]
        expected = self.run_here(*direct).stdout
        self.assertEqual(self.run_here(self.program, *direct[1:]).stdout, expected)
        self.assertEqual(self.run_here(self.python, "-m", "trainprof", *direct[1:]).stdout, expected)

    def test_a_script_of_another_environment_is_recorded(self):
        self.record(self.program, sys.executable, "-c", STEPS)
        self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")


class Start(InEnvironment):
    """trainprof.pth, and `import trainprof`."""

    def test_python_cannot_tell_that_it_is_installed(self):
        bare = os.path.join(self.place, "bare")
        run(sys.executable, "-m", "venv", "--without-pip", bare, cwd="/")
        write(os.path.join(bare, PACKAGES, "other.pth"), "# to read any such file takes a codec\n")
        seen = self.run_here(self.python, "-c", SEEN).stdout.replace(self.venv, bare)
        self.assertEqual(seen, self.run_here(os.path.join(bare, "bin/python"), "-c", SEEN).stdout)

    def test_the_package_does_nothing_without_a_run(self):
        code = STEPS.replace("range(21)", "range(2)") + "import sys; print('ctypes' in sys.modules, trainprof.__file__)"
        result = self.run_here(self.python, "-c", code)
        self.assertEqual((result.stdout, result.stderr), ("False %s/__init__.py\n" % self.package, ""))

    def test_hooks_start_where_the_environment_is_not_read(self):
        for option in ("-I", "-E", "-P", "-s"):
            if option == "-P" and sys.version_info < (3, 11):
                continue
            with self.subTest(option):
                self.record(self.program, self.python, option, "-c", STEPS)
                self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")

    def test_hooks_start_where_another_start_up_file_comes_first(self):
        write(os.path.join(self.cwd, "mine/sitecustomize.py"), "print('the user started')")
        launcher = ("import os, sys; os.environ['PYTHONPATH'] = 'mine:' + os.environ['PYTHONPATH']; "
                    "os.execv(%r, sys.argv[1:])")
        result = self.record(self.program, self.python, "-c", launcher % self.python, "python", "-c", STEPS)
        self.assertEqual(result.stdout, "the user started\n")
        self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")

    def test_hooks_start_once(self):
        """Also where a program looks at its packages once more (activate_this.py does)."""
        code = ("import site, sys; site.addsitedir(%r); "
                "print([getattr(it, '__name__', type(it).__name__) for it in sys.meta_path][:3], %r in sys.path)")
        hooks = os.path.join(self.package, "lib/trainprof-python")
        for options in ([], ["-I"]):
            result = self.record(self.program, self.python, *options, "-c", code % (self.packages, hooks))
            self.assertEqual(result.stdout, "['After', '_Package', 'BuiltinImporter'] False\n")

    def test_what_records_is_what_is_imported(self):
        """Another version in the program's environment does not mix with the recorder's."""
        other = os.path.join(self.place, "other")
        packages = make_environment(other)
        write(os.path.join(packages, "trainprof/__init__.py"), "raise RuntimeError('another version')")
        python = os.path.join(other, "bin/python")
        result = self.record(self.program, python, "-c", STEPS + "print(trainprof.__file__)")
        self.assertEqual(result.stdout, "%s/lib/trainprof-python/trainprof/__init__.py\n" % self.package)

    def test_a_module_of_the_users_with_this_name_stays(self):
        write(os.path.join(self.cwd, "mine/trainprof.py"), "whose = 'mine'")
        code = "import sys; sys.path.insert(0, 'mine'); import trainprof; print(trainprof.whose)"
        self.assertEqual(self.record(self.program, self.python, "-c", code).stdout, "mine\n")
        write(os.path.join(self.cwd, "clone/trainprof/README.md"))
        code = "import sys; sys.path.insert(0, 'clone')" + STEPS
        self.record(self.program, sys.executable, "-c", code)
        self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")

    def test_what_is_left_of_half_an_installation_does_no_harm(self):
        half = os.path.join(self.place, "half")
        packages = make_environment(half)
        shutil.rmtree(os.path.join(packages, "trainprof"))
        python = os.path.join(half, "bin/python")
        for hooks in (None, os.path.join(packages, "trainprof/lib/trainprof-python")):
            for options in ([], ["-I"]):
                result = self.run_here(python, *options, "-c", "print(1)", TRAINPROF_PYTHON=hooks, TRAINPROF_DIR=hooks)
                self.assertEqual((result.stdout, result.stderr), ("1\n", ""))
        self.record(self.program, python, "-c", STEPS)
        self.assertEqual(self.steps_of_the_run(self.program)["source"], "explicit")


if __name__ == "__main__":
    unittest.main()
