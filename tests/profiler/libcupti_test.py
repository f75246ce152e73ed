"""No libcupti harms the program: whatever the library does when it is asked, the program's exit code and
output stay its own, the card says what is wrong, and doctor says the same."""
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import harness
from harness import TrainprofTest

STUB = os.environ["TRAINPROF_TEST_STUB_DRIVER"]
PROGRAM = os.environ["TRAINPROF_TEST_STUB_PROGRAM"]
FAKES = os.environ["TRAINPROF_TEST_FAKE_CUPTI"]
WHEELS = os.environ["TRAINPROF_TEST_WHEELS"]
CALLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../collectors/cupti/calls.cpp")
PINS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "cupti_wheels.txt")
OUTPUT = b"output: 0 signals, no child, descriptor 3\n"


class LibcuptiTest(TrainprofTest):
    def surroundings(self, library, driver, **changes):
        """`driver`: its version, or "fails" where cuInit does."""
        variables = {"LD_LIBRARY_PATH": STUB, "TRAINPROF_CUPTI": library,
                     "STUB_DRIVER_VERSION": "13030" if driver == "fails" else str(driver),
                     "STUB_DRIVER_CUINIT": "100" if driver == "fails" else "0",
                     # NVIDIA's libraries keep what they allocate; a crash must be one.
                     "ASAN_OPTIONS": "detect_leaks=0:handle_segv=0",
                     "TSAN_OPTIONS": "handle_segv=0", **changes}
        return self.environment(**variables)

    def run_and_check(self, environment, driver, output=OUTPUT):
        """What the card says about the GPU."""
        folder = self.path(f"run-{len(os.listdir(self.cwd))}")
        result = self.trainprof("run", "--no-report", "-o", folder, "--", PROGRAM, env=environment)
        self.assertEqual(result.returncode, 7 if driver == "fails" else 5, result.stderr)
        self.assertEqual(result.stdout, output)
        notes = re.findall(r"note: GPU: (.*)", result.stderr.decode())
        self.assertEqual(len(notes), 1, result.stderr)
        return notes[0]

    def doctor(self, environment):
        result = self.trainprof("doctor", "--format", "json", env=environment)
        return {check["id"]: check for check in json.loads(result.stdout)["checks"]}

    def assert_doctor_agrees(self, environment, note, driver):
        checks = self.doctor(environment)
        self.assertEqual(checks["gpu_recording"]["state"], "off")
        told = [checks["cupti"]["finding"], checks["gpu_recording"]["finding"]]
        if driver == "fails":  # its own check says so, whatever the library does
            self.assertIn("cuInit fails with error 100", checks["gpu_driver"]["finding"])
            self.assertIn("The driver cannot be used: cuInit gives error 100".lower(), note.lower())
        else:
            self.assertIn(note, told)


class Impostors(LibcuptiTest):
    """Libraries made for the test."""

    def fake(self, mode, driver=13000, soname="13", **changes):
        log = self.path(f"calls-{mode}")
        environment = self.surroundings(os.path.join(FAKES, f"libcupti.so.{soname}"), driver,
                                        FAKE_CUPTI=mode, FAKE_CUPTI_LOG=log, **changes)
        return environment, log

    def expect(self, mode, words, driver=13000, soname="13"):
        """Runs with it; the note has `words`, doctor says the same, and nothing was called in the
        program itself."""
        environment, log = self.fake(mode, driver, soname)
        note = self.run_and_check(environment, driver)
        self.assertIn(words, note)
        calls = []
        if os.path.exists(log):
            with open(log, encoding="utf-8") as file:
                calls = [line.split() for line in file]
        self.assertLessEqual({process for process, _ in calls}, {"trainprof-ask"})
        self.assert_doctor_agrees(environment, note, driver)
        return [function for _, function in calls]

    def test_one_that_crashes_is_not_loaded(self):
        self.expect("crash", "cuptiGetVersion crashes with signal 11. Name the path of another one")

    def test_one_that_calls_itself_for_ever_is_not_loaded(self):
        self.expect("recursion", "cuptiGetVersion crashes with signal 11")

    def test_a_driver_that_does_not_start_is_named_as_the_cause(self):
        self.expect("crash", "cuInit gives error 100 (CUDA_ERROR_NO_DEVICE)", driver="fails")
        self.expect("999", "The driver cannot be used", driver="fails")

    def test_one_that_hangs_is_left_after_five_seconds(self):
        self.expect("hang", "cuptiGetVersion does not return within the time allowed")

    def test_one_that_ends_the_process_is_not_loaded(self):
        self.expect("exit", "ended at cuptiGetVersion")

    def test_one_that_gives_an_error_to_everything_is_told_with_the_errors_name(self):
        self.expect("999", "driver 13.0: cuptiGetVersion gives CUPTI_ERROR_UNKNOWN. Name the path")

    def test_one_that_hides_the_size_of_its_records_is_not_used(self):
        self.expect("no_sizes", "it does not tell how large its records are")

    def test_nothing_is_called_in_one_that_is_too_new_for_the_driver(self):
        calls = self.expect("crash", "libcupti 99 at ", soname="99")
        self.assertEqual(set(calls), {"dlopen"})
        calls = self.expect("crash", "driver 12.8: install the CUPTI of the driver's CUDA version",
                            driver=12080)
        self.assertEqual(set(calls), {"dlopen"})

    def test_sizes_may_be_asked_for_and_results_have_names_without_cupti(self):
        # It answers in its process and refuses to subscribe in the program: there it is called.
        environment, _ = self.fake("good")
        note = self.run_and_check(environment, 13000, b"a library's word\n" + OUTPUT)
        self.assertIn("cuptiSubscribe gives CUPTI_ERROR_UNKNOWN", note)
        self.assertEqual(self.doctor(environment)["gpu_recording"]["finding"], note)

    def test_the_search_goes_on_behind_one_that_crashes(self):
        good = os.path.join(self.folder, "good")
        os.mkdir(good)
        os.symlink(os.path.join(FAKES, "libcupti.so.99"), os.path.join(good, "libcupti.so.13"))
        packages = os.path.join(self.folder, "venv/lib/python3.11/site-packages/nvidia/cu13/lib")
        os.makedirs(packages)
        os.symlink(os.path.join(FAKES, "libcupti.so.13"), os.path.join(packages, "libcupti.so.13"))
        environment, log = self.fake("crash13", 99000)
        environment.update(VIRTUAL_ENV=os.path.join(self.folder, "venv"),
                           LD_LIBRARY_PATH=STUB + ":" + good)
        del environment["TRAINPROF_CUPTI"]
        note = self.run_and_check(environment, 99000, b"a library's word\n" + OUTPUT)
        self.assertIn(f"at {good}", note)
        with open(log, encoding="utf-8") as file:
            self.assertEqual(file.read().count("trainprof-ask cuptiGetVersion"), 2)

    def test_without_descriptors_gpu_recording_is_off_and_the_program_is_well(self):
        environment, log = self.fake("good")
        folder = self.path("few")
        # Inside the program, so that trainprof itself has what it needs.
        program = ["sh", "-c", f"ulimit -n 4; exec {PROGRAM}"]
        result = self.trainprof("run", "--no-report", "-o", folder, "--", *program, env=environment)
        self.assertEqual(result.returncode, 5, result.stderr)
        self.assertEqual(result.stdout, OUTPUT)
        self.assertFalse(os.path.exists(log))


def fetch(pin):
    """The pinned library, unpacked in WHEELS once; or None and why not."""
    folder = os.path.join(WHEELS, pin)
    pattern = os.path.join(folder, "nvidia", "*", "lib", "libcupti.so.1*")
    headers = os.path.join(folder, "nvidia", "*", "include", "*_cbid.h")
    if glob.glob(pattern) and glob.glob(headers):
        return glob.glob(pattern)[0], ""
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier version of this test
    os.makedirs(WHEELS, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WHEELS) as work:
        pip = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet",
                              "--only-binary", ":all:", "--dest", work, pin],
                             capture_output=True, check=False)
        wheels = glob.glob(os.path.join(work, "*.whl"))
        if not wheels:
            return None, (pip.stderr.decode().strip().splitlines() or ["pip says nothing"])[-1]
        unpacked = os.path.join(work, "unpacked")
        with zipfile.ZipFile(wheels[0]) as archive:
            wanted = ("/lib/libcupti", "_cbid.h")
            archive.extractall(unpacked, [f for f in archive.namelist() if any(it in f for it in wanted)])
        os.rename(unpacked, folder)
    return glob.glob(pattern)[0], ""


def fetch_all():
    """The libraries by version; or None and why not."""
    with open(PINS, encoding="utf-8") as file:
        lines = [line.strip() for line in file if not line.startswith("#")]
    everything = bool(os.environ.get("TRAINPROF_TEST_ALL_LIBCUPTI"))
    pins = [line.split()[0] for line in lines if everything or not line.endswith("# on request")]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        fetched = list(pool.map(fetch, pins))
    why_not = [reason for library, reason in fetched if library is None]
    if why_not:
        return None, why_not[0]
    return {pin.split("==")[1]: library for pin, (library, _) in zip(pins, fetched)}, ""


class Wheels(LibcuptiTest):
    """NVIDIA's own, which have no GPU here: every one of them must be told from a good one."""

    libraries = {}  # filled before the tests run

    @staticmethod
    def words_of(version):
        """What is said where the driver is of their major version."""
        number = tuple(map(int, version.split(".")[:2]))
        if number < (13, 0):
            return "cuptiSubscribe gives CUPTI_ERROR_NOT_INITIALIZED"
        if number < (13, 2):
            return "cuptiSubscribe gives CUPTI_ERROR_UNKNOWN"
        if number == (13, 2):
            return "not loaded, as cuptiGetVersion crashes with signal 11"
        return "cuptiGetVersion gives CUPTI_ERROR_UNKNOWN"

    def test_each_is_harmless_and_told(self):
        for version, library in self.libraries.items():
            for driver in (12080, 13000, 13030, "fails"):
                with self.subTest(library=version, driver=driver):
                    environment = self.surroundings(library, driver)
                    note = self.run_and_check(environment, driver)
                    too_new = version.startswith("13") and driver == 12080
                    self.assertRegex(note, r"libcupti %s\b|libcupti at |^cuptiSubscribe" % version.split(".")[0])
                    self.assertIn("driver 12.8: install the CUPTI of" if too_new else self.words_of(version), note)
                    self.assert_doctor_agrees(environment, note, driver)
                    if os.environ.get("TRAINPROF_TEST_ALL_LIBCUPTI"):
                        print(f"{version:9} driver {driver}: {note.replace(library, 'LIBCUPTI')}")

    def test_calls_have_the_numbers_of_the_newest_headers(self):
        """CuptiCalls has those of the build's."""
        newest = max(self.libraries, key=lambda version: tuple(map(int, version.split("."))))
        include = os.path.join(os.path.dirname(self.libraries[newest]), "..", "include")
        with open(CALLS, encoding="utf-8") as file:
            calls = re.findall(r'\{([RD]), (\d+), \w+, "(\w+)"\}', file.read())
        self.assertGreater(len(calls), 300)
        known = 0
        for domain, name in (("R", "runtime"), ("D", "driver")):
            with open(os.path.join(include, f"cupti_{name}_cbid.h"), encoding="utf-8") as file:
                numbers = dict(re.findall(r"_TRACE_CBID_(\w+)\s*=\s*(\d+)", file.read()))
            for _, number, call in (it for it in calls if it[0] == domain):
                known += call in numbers
                self.assertEqual(numbers.get(call, number), number, call)
        self.assertGreater(known, len(calls) - 5)  # two were taken out of CUDA


if __name__ == "__main__":
    if "Wheels" in sys.argv:
        Wheels.libraries, REASON = fetch_all()
        if Wheels.libraries is None:
            print(f"Skipped: PyPI cannot be reached: {REASON}")
            sys.exit(77)
    harness.main()
