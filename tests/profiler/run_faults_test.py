"""Whatever goes wrong around the GPU's recording is told by name: every fault of the virtual GPU, in
the end card or in the report."""
import json
import os

import harness
from harness import TrainprofTest

# What a fault needs to show itself: the program's mode, settings of the virtual GPU, its argument.
MIXED = ("mixed", "50")
# Where it is told: "card" (stderr of `run`), "doctor" (beforehand), "text" (the report), else a kind of
# Trace quality or a fact of the environment; and words that must stand there.
FAULTS = {
    "no_driver": (MIXED, {}, [
        ("doctor", "GPU recording    not here: see GPU driver"),
        ("card", "note: GPU: CUDA 13.0, cuInit fails with error"),
    ]),
    "no_device": (MIXED, {}, [
        ("doctor", "GPU recording    not here: see GPU driver"),
        ("card", "note: GPU: CUDA 13.0, cuInit fails with error 100"),
    ]),
    "old_driver": (MIXED, {}, [
        ("doctor", "GPU recording    not here: see CUPTI"),
        ("card", "note: GPU: libcupti 13 at "),
        ("cupti.state", "driver 12.0"),
    ]),
    "wrong_libcupti": (MIXED, {}, [
        ("doctor", "GPU recording    libcupti 12.4 at "),
        ("card", "note: GPU: libcupti 12.4 at "),
        ("cupti.state", "driver 13.0"),
    ]),
    "another_subscriber": (MIXED, {}, [
        ("doctor", "GPU recording    CUPTI is held by 'Nsight Systems'"),
        ("card", "CUPTI is held by 'Nsight Systems'"),
        ("cupti.state", "CUPTI is held by 'Nsight Systems'"),
    ]),
    "insufficient_privileges": (MIXED, {}, [
        ("doctor", "GPU recording    CUPTI needs admin here"),
        ("card", "RmProfilingAdminOnly"),
        ("cupti.state", "NVreg_RestrictProfilingToAdminUsers=0"),
    ]),
    "subscribe_unknown_error": (MIXED, {}, [
        ("doctor", "GPU recording    cuptiSubscribe gives"),
        ("card", "cuptiSubscribe gives CUPTI_ERROR_UNKNOWN"),
        ("cupti.state", "cuptiSubscribe gives CUPTI_ERROR_UNKNOWN"),
    ]),
    "enable_fails": (MIXED, {}, [
        ("doctor", "GPU recording    cuptiActivityEnable gives"),
        ("card", "cuptiActivityEnable gives CUPTI_ERROR_NOT_SUPPORTED"),
    ]),
    "enable_fails=1": (MIXED, {}, [
        ("cupti_calls_refused", "cuptiActivityEnable(MEMCPY) gives CUPTI_ERROR_NOT_SUPPORTED"),
    ]),
    "drop_records": (MIXED, {}, [
        ("card", "records by CUPTI"),
        ("dropped_device_records", "dropped"),
        ("launches_without_kernel", "CUPTI dropped"),
    ]),
    "flush_hangs": (MIXED, {}, [
        ("card", "cuptiActivityFlushAll exceeded 5 s; leaving it"),
        ("gpu_recording_ended", "cuptiActivityFlushAll exceeded 5 s"),
    ]),
    "out_of_order": (("kernels", "20000"), {"VGPU_SETTINGS": "scale=0"}, [
        ("reordered_buffers", "after younger ones"),
    ]),
    "zero_start_records": (MIXED, {}, [
        ("card", "records by CUPTI"),
        ("zero_start_records", "without a start"),
        ("launches_without_kernel", "no times"),
    ]),
    # Shorter kernels: what is delivered as complete tells it from work that was cut off.
    "zero_start_records=100000": (("loaded", "4000", "100000"), {}, [
        ("gpu_recording_ended", "CUPTI ran out of buffers on the device"),
    ]),
    "reversed_records": (MIXED, {}, [("reversed_records", "end before they begin")]),
    "reversed_records=100000": (("loaded", "4000"), {}, [
        ("gpu_recording_ended", "CUPTI ran out of buffers on the device"),
    ]),
    # A buffer for a thousand operations: however slow the machine, no flush comes early enough.
    "device_buffers=1,complete_at_flush": (("kernels", "30000"), {"VGPU_SETTINGS": "scale=0,operation_bytes=3200"}, [
        ("card", "dropped: 0 records; "),
        ("card", " records by CUPTI"),
        ("zero_start_records", "without a start"),
    ]),
    "disable_holds": (("loaded", "400"), {"VGPU_CUPTI_VERSION": "13.1"}, [("cupti.state", "recording")]),
    "disable_hangs": (("loaded", "400"), {"VGPU_CUPTI_VERSION": "13.0.0"}, [
        ("kernels_kept_on", "CUPTI 13.0.0 may hang"),
    ]),
    "own_timestamps": (("loaded", "4000"), {}, [("cupti.state", "recording")]),
    "complete_at_flush": (("kernels", "2000"), {}, [("cupti.state", "recording")]),
    "complete_at_once": (("kernels", "2000"), {}, [("cupti.state", "recording")]),
    "no_sync_records": (MIXED, {}, [("no_sync_records", "no synchronization record")]),
    "withheld_until_exit": (("steps", "38", "100"), {}, [("late_delivery", "CUPTI held records back")]),
    "zero_kernel_records": (MIXED, {}, [("launches_without_kernel", "2 launches but 0 kernel records")]),
    "blank_incomplete": (("unfinished", "50"), {}, [("unreadable_device_bytes", "no records")]),
    "slow_setup": (MIXED, {}, [("slow_cupti_setup", "CUPTI set-up took ")]),
    "crash_at=30": (("kernels", "50"), {}, [
        ("card", "ended by signal 9"),
        ("launches_without_kernel", "before CUPTI delivered") if harness.HARD_GPU else
        ("lost_name", "when the process ended"),
    ]),
    "null_name": (MIXED, {}, [("kernels_without_name", "gave no name")]),
    "huge_names": (MIXED, {}, [("truncated_string", "4096")]),
    "garbage_kind": (("kernels", "1000"), {"VGPU_SETTINGS": "scale=0"}, [
        ("unreadable_device_bytes", "no records"),
    ]),
    "callback_twice": (("stacks", "3"), {}, [("repeated_callbacks", "once more")]),
    "mig": (MIXED, {}, [
        ("doctor", "ok    GPU recording"),
        ("mig_uuid_unknown", "a MIG slice's UUID is wrong in CUPTI before 13.3 update 1"),
        ("text", "GPU 0 Virtual GPU (trainprof) (compute capability 9.0, 132 multiprocessors, 80.0 GiB, a MIG slice)"),
    ]),
    "graph_needs_kind": (("graph_steps", "300"), {}, [
        ("graph_launches_without_nodes", "of which CUPTI reported no node"),
    ]),
    "late_session_correlation": (("graph_steps", "300"), {}, [
        ("graph_launches_without_nodes", "of which CUPTI reported no node"),
    ]),
    "no_unwind_info": (("stacks", "1000"), {}, [
        ("stacks_scanned", "cannot be unwound"),
        ("text", "ReadsTheLoss"),
    ]),
    "oom_at": (MIXED, {}, [("failed_calls", "cudaMalloc gives error 2 (out of memory)")]),
    "missing_function": (MIXED, {}, [
        ("cupti_calls_refused", "cuptiSubscribe_v2 gives CUPTI_ERROR_API_NOT_IMPLEMENTED"),
    ]),
    "missing_function=cuptiActivityFlushAll": (MIXED, {}, [("cupti_calls_refused", "cuptiActivityFlushAll")]),
    "missing_function=cuptiActivityEnableDriverApi": (MIXED, {}, [("cupti_calls_refused", "EnableDriverApi")]),
    "missing_function=cuptiEnableCallback": (MIXED, {}, [("cupti_calls_refused", "cuptiEnableCallback")]),
    "nvml_missing_function": (("steps", "300"), {}, [
        ("gpu_not_sampled", "GPU 0 throttle reasons: this NVML lacks it"),
    ]),
    "nvml_lost": (("steps", "1200"), {}, [("gpu_not_sampled", "error 15 (GPU is lost)")]),
}


class Faults(TrainprofTest):
    def run_cuda(self, mode, **variables):
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"], **variables)
        folder = self.path("run")
        result = self.trainprof("run", "-o", folder, "--", os.environ["TRAINPROF_TEST_CUDA"], *mode, env=env)
        report = self.trainprof("report", folder, "--format", "json", env=env)
        text = self.trainprof("report", folder, env=env)
        return result, report, text

    def doctor(self, fault, **variables):
        env = self.environment(LD_LIBRARY_PATH=os.environ["TRAINPROF_TEST_VIRTUAL_GPU"], VGPU_FAULTS=fault,
                               **variables)
        return self.trainprof("doctor", env=env).stdout.decode()

    def check(self, fault, mode, variables, told):
        result, report, text = self.run_cuda(mode, VGPU_FAULTS=fault, **variables)
        card = result.stderr.decode()
        quality, environment = {}, {}
        if report.returncode == 0:
            parsed = json.loads(report.stdout)
            quality = {item["kind"]: item["detail"] for item in parsed["quality"]}
            environment = parsed["environment"]
        for where, words in told:
            if where == "doctor":
                self.assertIn(words, self.doctor(fault))
                continue
            if where == "text":
                self.assertIn(words, text.stdout.decode())
                continue
            said = card if where == "card" else quality.get(where, environment.get(where, ""))
            self.assertIn(words, said, f"{where}\n{card}\n{quality}\n{environment}")
            if where != "card":  # the report for people says it, too
                self.assertIn(words, text.stdout.decode(), where)

    def test_each_is_told_by_name(self):
        help_env = self.environment(VGPU_FAULTS="help")
        listing = self.run_plain([os.environ["TRAINPROF_TEST_CUDA"], "kernels", "1"], env=help_env)
        known = {line.split("=")[0].split(" ")[0] for line in
                 (listing.stdout + listing.stderr).decode().splitlines() if "  " in line}
        self.assertGreaterEqual(len(known), 28)
        self.assertEqual(known, {fault.split("=")[0] for fault in FAULTS})
        for fault, (mode, variables, told) in FAULTS.items():
            with self.subTest(fault):
                self.setUpFolder()
                self.check(fault, mode, variables, told)

    def test_habits_that_are_no_errors_cost_nothing_unsaid(self):
        for mode in (MIXED, ("loaded", "400"), ("graph_steps", "300"), ("stacks", "30"), ("threads", "500")):
            for version in ("12.4", "13.1"):
                with self.subTest(mode, version=version):
                    self.setUpFolder()
                    result, report, _ = self.run_cuda(mode, VGPU_FAULTS="", VGPU_HARD="1", VGPU_CUPTI_VERSION=version)
                    self.assertEqual(result.returncode, 0)
                    parsed = json.loads(report.stdout)
                    lost = [item for item in parsed["quality"] if item["severity"] == "data_loss"]
                    self.assertEqual(lost, [])
                    self.assertNotIn("launches_without_kernel", {item["kind"] for item in parsed["quality"]})
                    self.assertEqual(parsed["environment"]["cupti.state"], "recording")

    def setUpFolder(self):
        """Another recording is not in the way."""
        self.cwd = os.path.join(self.folder, str(len(os.listdir(self.folder))))
        os.mkdir(self.cwd)

    def test_hardware_tracing_is_told_of(self):
        setting = {"CUPTI_ENABLE_HW_TRACE": "1"}
        _, report, text = self.run_cuda(MIXED, **setting)
        said = {item["kind"]: item["detail"] for item in json.loads(report.stdout)["quality"]}["cupti_hw_trace"]
        self.assertIn("CUPTI_ENABLE_HW_TRACE=1 is set: before 13.4 Update 1", said)
        self.assertIn(said, text.stdout.decode())
        self.assertIn("CUPTI_ENABLE_HW_TRACE=1 is set", self.doctor("", **setting))

    def test_without_any_nothing_is_told(self):
        result, report, text = self.run_cuda(("stacks", "3"))
        self.assertNotIn(b"note:", result.stderr)
        self.assertNotIn("HW_TRACE", self.doctor("", CUPTI_ENABLE_HW_TRACE="0"))
        kinds = {item["kind"] for item in json.loads(report.stdout)["quality"]}
        memory = b"CUPTI takes up to 102 MB of GPU memory a context: 32 buffers of 3.2 MB, 1 at once\n"
        self.assertIn(b"\n" + memory, result.stderr)
        self.assertIn(b"  recording them, " + memory, text.stdout)
        # A release's programs have no lines to name; on a busy machine CUPTI takes long to start.
        self.assertEqual(kinds - {"stack_not_symbolised", "slow_cupti_setup"}, set())
        self.assertIn("ok    GPU recording", self.doctor(""))


if __name__ == "__main__":
    harness.main()
