"""`trainprof doctor` over made-up machines: a fake /proc, /sys, Python and environment."""
import json
import os

import harness
from harness import TrainprofTest

PARAMS = "EnableMSI: 1\nRmProfilingAdminOnly: {}\nTemporaryFilePath: \"\"\n"
VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"


class Doctor(TrainprofTest):
    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.folder, "root")
        os.mkdir(self.root)

    def put(self, name, text):
        path = os.path.join(self.root, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def doctor(self, *flags, code=None, **options):
        """The checks by id."""
        result = self.trainprof("doctor", "--format", "json", "--root", self.root, *flags, **options)
        report = json.loads(result.stdout)
        self.assertEqual(result.returncode, 0 if report["can_record"] else 1)
        if code is not None:
            self.assertEqual(result.returncode, code, result.stdout)
        return {check["id"]: check for check in report["checks"]}

    def fake_python(self, version_py):
        """An environment whose python3 has this torch/version.py."""
        packages = self.put("packages/torch/version.py", version_py)
        self.put("packages/torch/__init__.py", "raise SystemExit('torch must not be imported')\n")
        return self.environment(PYTHONPATH=os.path.dirname(os.path.dirname(packages)))

    def test_what_keeps_a_run_from_recording_fails_with_its_fix(self):
        os.mkdir(self.path("empty"))
        missing = self.doctor(code=1, env=self.environment(TRAINPROF_LIB_DIR=self.path("empty")))
        self.assertEqual(missing["nvtx_collector"]["state"], "fail")
        self.assertIn("TRAINPROF_LIB_DIR", missing["nvtx_collector"]["fix"])
        held = self.doctor(code=1, env=self.environment(NVTX_INJECTION64_PATH="/opt/other.so"))
        self.assertEqual(held["nvtx_injection"]["state"], "fail")
        self.assertIn("/opt/other.so", held["nvtx_injection"]["finding"])
        nowhere = self.doctor("-o", "/proc/self/status", code=1)
        self.assertEqual(nowhere["disk"]["state"], "fail")

    def test_a_library_that_does_not_load_fails(self):
        os.mkdir(self.path("broken"))
        with open(self.path("broken/libtrainprof_injection.so"), "wb") as file:
            file.write(b"not a library")
        checks = self.doctor(code=1, env=self.environment(TRAINPROF_LIB_DIR=self.path("broken")))
        self.assertIn("does not load", checks["nvtx_collector"]["finding"])

    def test_this_machine_can_record_with_our_collector(self):
        if os.environ.get("TRAINPROF_TEST_LIB"):
            self.assertEqual(self.doctor(code=0)["nvtx_collector"]["state"], "ok")

    def test_gpu_recording_names_what_stands_in_its_way(self):
        checks = self.doctor()
        recording = checks["gpu_recording"]
        if checks["gpu_driver"]["state"] == "ok" and checks["cupti"]["state"] == "ok":
            self.assertEqual(recording["state"], "ok")
        else:
            self.assertEqual(recording["state"], "off")
            self.assertRegex(recording["finding"], "GPU driver|CUPTI|built without")

    def test_another_tool_in_cudas_slot_costs_gpu_recording_alone(self):
        held = self.doctor(env=self.environment(CUDA_INJECTION64_PATH="/opt/nsight-systems/x.so"))
        self.assertEqual(held["cuda_injection"]["state"], "off")
        self.assertIn("Nsight Systems", held["cuda_injection"]["finding"])
        self.assertIn("CUDA_INJECTION64_PATH", held["cuda_injection"]["fix"])

    def test_mig_slices_are_named(self):
        self.assertNotIn("mig", self.doctor())
        self.put("proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "")
        self.assertIn("gpu0", self.doctor()["mig"]["finding"])

    def test_kernel_module_without_its_library_points_at_the_container(self):
        driver = self.doctor()["gpu_driver"]
        self.put("proc/driver/nvidia/version", VERSION)
        with_module = self.doctor()["gpu_driver"]
        self.assertNotIn("550.54.15", driver["finding"])
        self.assertIn("550.54.15", with_module["finding"])

    def test_counters_for_administrators_only(self):
        self.put("proc/driver/nvidia/params", PARAMS.format(1))
        self.put("proc/self/status", "CapEff:\t0000000000000000\n")
        blocked = self.doctor()["gpu_counters"]
        self.assertEqual(blocked["state"], "off")
        self.assertIn("NVreg_RestrictProfilingToAdminUsers=0", blocked["fix"])
        self.put("proc/self/status", "CapEff:\t000001ffffffffff\n")
        self.assertEqual(self.doctor()["gpu_counters"]["state"], "ok")
        self.put("proc/driver/nvidia/params", PARAMS.format(0))
        self.put("proc/self/status", "CapEff:\t0000000000000000\n")
        self.assertEqual(self.doctor()["gpu_counters"]["state"], "ok")

    def test_wsl_is_named(self):
        self.put("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n")
        self.assertNotIn("wsl", self.doctor())
        self.put("proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
        self.assertIn("CUPTI works in WSL 2", self.doctor()["wsl"]["finding"])
        self.assertEqual(self.doctor()["wsl"]["state"], "info")

    def test_torch_is_read_and_not_imported(self):
        cpu = self.fake_python("__version__ = '2.13.0+cpu'\ncuda: Optional[str] = None\n")
        self.assertEqual(self.doctor(env=cpu)["torch"]["finding"], "2.13.0+cpu, CPU build")
        cuda = self.fake_python("__version__ = '2.13.0'\ndebug = False\ncuda: Optional[str] = '13.0'\n")
        self.assertEqual(self.doctor(env=cuda)["torch"]["finding"], "2.13.0, built for CUDA 13.0")

    def test_a_python_that_hangs_or_fails_costs_seconds_and_says_so(self):
        fake = self.put("bin/python3", "#!/bin/sh\nexit 3\n")
        os.chmod(fake, 0o755)
        path = os.path.dirname(fake) + ":" + os.environ["PATH"]
        self.assertIn("does not start", self.doctor(env=self.environment(PATH=path))["python"]["finding"])
        self.put("bin/python3", "#!/bin/sh\nexec sleep 30 >/dev/null\n")
        self.assertIn("more than", self.doctor(env=self.environment(PATH=path))["python"]["finding"])

    def test_clock_source_is_read(self):
        self.put("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n")
        self.put("proc/cpuinfo", "flags : fpu tsc\n")
        self.assertIn("hpet, no invariant TSC", self.doctor()["clock"]["finding"])

    def test_who_may_have_its_python_stacks_read(self):
        self.put("proc/self/status", "CapEff:\t0000000000000000\n")
        self.assertEqual(self.doctor()["python_stacks"]["state"], "ok")
        for scope, state in ((0, "ok"), (1, "info"), (2, "info"), (3, "info")):
            self.put("proc/sys/kernel/yama/ptrace_scope", f"{scope}\n")
            self.assertEqual(self.doctor()["python_stacks"]["state"], state, scope)
        self.put("proc/self/status", "CapEff:\t000001ffffffffff\n")
        for scope, state in ((1, "ok"), (2, "ok"), (3, "info")):
            self.put("proc/sys/kernel/yama/ptrace_scope", f"{scope}\n")
            self.assertEqual(self.doctor()["python_stacks"]["state"], state, scope)

    def test_text_names_each_fix(self):
        result = self.trainprof("doctor", "--root", self.root)
        self.assertIn(b"fix: ", result.stdout)
        self.assertIn(b"GPU driver", result.stdout)

    def test_unknown_format_is_a_usage_error(self):
        self.assertEqual(self.trainprof("doctor", "--format", "xml").returncode, 2)


if __name__ == "__main__":
    harness.main()
