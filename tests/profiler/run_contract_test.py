"""`trainprof run` leaves the program alone: exit code, output, input, environment, descriptors."""
import json
import os
import resource
import shutil
import signal
import sys
import time

import harness
from harness import TrainprofTest


class ExitCodes(TrainprofTest):
    def code_of(self, *program, flags=()):
        return self.trainprof("run", *flags, "--", *program).returncode

    def test_true_and_false(self):
        self.assertEqual(self.code_of("true"), 0)
        self.assertEqual(self.code_of("false"), 1)

    def test_any_code_of_the_program_is_ours(self):
        for code in (*range(2, 256, 23), 125, 126, 127, 255):
            self.assertEqual(self.code_of("sh", "-c", f"exit {code}"), code)

    def test_a_signal_that_ends_the_program_is_128_plus_its_number(self):
        for name in ("SEGV", "KILL", "TERM", "ABRT"):
            expected = 128 + getattr(signal, "SIG" + name)
            self.assertEqual(self.code_of("sh", "-c", f"ulimit -c 0; kill -{name} $$"), expected)

    def test_a_program_that_is_not_there_is_127_and_leaves_no_folder(self):
        for program in ("no-such-program-here", "./neither", "/nor/this"):
            result = self.trainprof("run", "--", program)
            self.assertEqual(result.returncode, 127)
            self.assertIn(b"not found", result.stderr)
        self.assertEqual(self.run_folders(), [])

    def test_a_script_without_its_interpreter_says_so(self):
        with open(self.path("script"), "w", encoding="utf-8") as file:
            file.write("#!/no/such/interpreter\n")
        os.chmod(self.path("script"), 0o755)
        result = self.trainprof("run", "--", "./script")
        self.assertEqual(result.returncode, 127)
        self.assertIn(b"interpreter", result.stderr)

    def test_what_cannot_be_executed_is_126_and_leaves_no_folder(self):
        open(self.path("data"), "wb").close()
        for program in ("./data", "/tmp"):
            result = self.trainprof("run", "--", program)
            self.assertEqual(result.returncode, 126)
            self.assertIn(b"cannot execute", result.stderr)
        self.assertEqual(self.run_folders(), [])

    def test_the_programs_own_127_is_not_taken_for_ours(self):
        result = self.trainprof("run", "--", "sh", "-c", "exit 127")
        self.assertNotIn(b"not found", result.stderr)
        self.assertEqual(len(self.run_folders()), 1)

    def test_a_wrong_flag_of_run_is_125_and_starts_nothing(self):
        for flags in (["--bogus"], ["--steps", "5"], ["--steps", "9:3"], ["--delay", "soon"],
                      ["--duration", "-1"], ["--max-size", "lots"], ["--capture", "step"], []):
            program = ["--", "touch", "started"] if flags else []
            result = self.trainprof("run", *flags, *program)
            self.assertEqual(result.returncode, 125, flags)
            self.assertTrue(result.stderr)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_a_parent_that_ignores_its_children_costs_no_exit_code(self):
        result = self.trainprof(
            "run", "--", "sh", "-c", "exit 9",
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(result.returncode, 9)

    def test_a_tree_of_1000_processes(self):
        program = self.script("tree.py", """
import os, sys
for _ in range(10):
    if os.fork() == 0:
        for _ in range(99):
            pid = os.fork()
            if pid == 0: os._exit(0)
            os.waitpid(pid, 0)
        os._exit(0)
for _ in range(10): os.wait()
sys.exit(11)
""")
        self.assertEqual(self.code_of(*program), 11)

    def test_orphans_are_not_waited_for(self):
        begin = time.monotonic()
        code = self.code_of("sh", "-c", "sleep 30 >/dev/null 2>&1 & echo $! >orphan; exit 3")
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(code, 3)
        orphan = int(self.read("orphan"))
        self.assertEqual(harness.process_state(orphan), "S")
        os.kill(orphan, signal.SIGKILL)


class Transparency(TrainprofTest):
    """The same program with and without us sees and does the same."""

    def both(self, program, **options):
        plain = self.run_plain(program, **options)
        ours = self.trainprof("run", "--quiet", "--", *program, **options)
        return plain, ours

    def test_input_and_output_pass_byte_for_byte(self):
        data = os.urandom(3_000_000)
        plain, ours = self.both(["sh", "-c", "tee /dev/stderr"], input=data)
        self.assertEqual(ours.stdout, data)
        self.assertEqual(ours.stderr, plain.stderr)
        self.assertEqual(ours.returncode, plain.returncode)

    def test_stdout_is_the_programs_alone_even_with_the_card(self):
        result = self.trainprof("run", "--", "echo", "hello")
        self.assertEqual(result.stdout, b"hello\n")
        self.assertIn(b"trainprof:", result.stderr)

    def test_arguments_are_not_looked_at(self):
        words = ["-o", "x", "--full", "--", "--help", "", "two words", "$HOME", "\udcff\udcfe"]
        for separator in (["--"], []):
            result = self.trainprof("run", "-q", *separator, "printf", "%s\\n", *words)
            self.assertEqual(result.stdout.decode(errors="surrogateescape"),
                             "".join(word + "\n" for word in words))

    def test_environment_gains_our_variables_only(self):
        program = [sys.executable, "-c", "import os, json; print(json.dumps(dict(os.environ)))"]
        plain, ours = self.both(program, env=self.environment(EMPTY="", SPACED="a b"))
        before, after = json.loads(plain.stdout), json.loads(ours.stdout)
        added = {k: v for k, v in after.items() if before.get(k) != v}
        ours = {"TRAINPROF_DIR", "TRAINPROF_OPTIONS", "NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH", "TEARDOWN_CUPTI"}
        if os.path.isdir(os.path.join(self.lib_dir, "trainprof-python")):
            ours.update(("PYTHONPATH", "TRAINPROF_PYTHON"))
        self.assertEqual(set(added) - {"TRAINPROF_MEMORY"}, ours)  # it depends on the system
        self.assertEqual(set(before) - set(after), set())
        self.assertEqual(added["TRAINPROF_DIR"], self.the_run_folder())

    def test_process_attributes_are_inherited(self):
        program = [sys.executable, "-c", """
import os, resource, sys
names = ("SigBlk", "SigIgn", "SigCgt", "Umask", "NoNewPrivs", "Cpus_allowed")
status = [line for line in open("/proc/self/status") if line.split(":")[0] in names]
fds = sorted((int(fd), os.readlink(f"/proc/self/fd/{fd}").split(":")[0])
             for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}"))
print(status, fds, os.getcwd(), os.getsid(0), os.nice(0), open("/proc/self/limits").read())
"""]
        extra = os.open("/dev/null", os.O_RDONLY)
        self.addCleanup(os.close, extra)

        def prepare():
            os.umask(0o027)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
            resource.setrlimit(resource.RLIMIT_NOFILE, (200, 300))
        plain, ours = self.both(program, preexec_fn=prepare, pass_fds=[extra])
        self.assertEqual(ours.stdout, plain.stdout)
        self.assertIn(f"({extra}, '/dev/null')".encode(), ours.stdout)

    def test_program_shares_our_process_group(self):
        result = self.trainprof("run", "-q", "--", sys.executable, "-c",
                                "import os; print(os.getpgrp() == os.getpgid(os.getppid()))")
        self.assertEqual(result.stdout, b"True\n")

    def test_closed_descriptors_stay_closed_and_never_receive_a_recording(self):
        program = "ls /proc/self/fd | tr '\\n' ' ' >fds"
        code = self.run_plain(["sh", "-c", f'"{harness.TRAINPROF}" run -- sh -c "{program}" 2>&- <&-'])
        self.assertEqual(code.returncode, 0)
        # ls has 1 (the pipe) and the folder that it reads, which takes the lowest free number.
        self.assertEqual(self.read("fds").split(), [b"0", b"1"])


class Failures(TrainprofTest):
    """What cannot be recorded costs the recording, not the run; --strict turns that around."""

    def check(self, message, flags=(), **options):
        result = self.trainprof("run", *flags, "--", "sh", "-c", "echo ran; exit 5", **options)
        self.assertEqual((result.returncode, result.stdout), (5, b"ran\n"), result.stderr)
        self.assertIn(message, result.stderr)
        strict = self.trainprof("run", "--strict", *flags, "--", "touch", "started", **options)
        self.assertEqual(strict.returncode, 125, strict.stderr)
        self.assertIn(message, strict.stderr)
        self.assertFalse(os.path.exists(self.path("started")))

    def test_unwritable_folder(self):
        self.check(b"/proc/nowhere", ["-o", "/proc/nowhere"])
        self.check(b"/proc/self/out", ["-o", "/proc/self/out/deep"])

    def test_folder_below_a_file(self):
        open(self.path("file"), "wb").close()
        self.check(b"file", ["-o", "file/run"])

    def test_disk_full_before_the_start(self):
        def no_room():  # a write of a byte fails, as on a full disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        self.check(b"not recording", preexec_fn=no_room)
        self.assertEqual(os.listdir(self.cwd), [])

    def test_missing_collector_is_named(self):
        os.mkdir(self.path("empty"))
        self.check(b"libtrainprof_injection.so", env=self.environment(TRAINPROF_LIB_DIR=self.path("empty")))

    def test_another_tools_injection_is_left_alone_and_named(self):
        held = self.environment(NVTX_INJECTION64_PATH="/opt/nsight-systems/libToolsInjection64.so")
        self.check(b"Nsight Systems", env=held)
        result = self.trainprof("run", "--", "printenv", "NVTX_INJECTION64_PATH", env=held)
        self.assertEqual(result.stdout.strip(), held["NVTX_INJECTION64_PATH"].encode())

    def test_a_run_within_a_run_belongs_to_the_outer_one(self):
        result = self.trainprof("run", "--", harness.TRAINPROF, "run", "--", "sh", "-c",
                                "echo $TRAINPROF_DIR; exit 6")
        self.assertEqual(result.returncode, 6)
        self.assertEqual(result.stdout.decode().strip(), self.the_run_folder())
        self.assertIn(b"inside another trainprof run", result.stderr)


class Flags(TrainprofTest):
    def options_of(self, *flags):
        return self.trainprof("run", *flags, "--", "printenv", "TRAINPROF_OPTIONS").stdout.decode()

    def test_windows_reach_the_collector(self):
        self.assertEqual(self.options_of(), "\n")
        self.assertEqual(self.options_of("--steps", "100:110"), "steps=100:110\n")
        self.assertEqual(self.options_of("--delay", "1.5", "--duration", "500ms"),
                         "delay_ms=1500;duration_ms=500\n")
        self.assertEqual(self.options_of("--capture=nvtx:my range", "--full"),
                         "capture=my range;full=1\n")

    def test_gpu_options_reach_the_collector(self):
        self.assertEqual(self.options_of("--no-gpu"), "gpu=off\n")
        self.assertEqual(self.options_of("--cuda-graphs=graph", "--full"), "graphs=graph;full=1\n")
        self.assertEqual(self.options_of("--cuda-graphs=node"), "\n")
        self.assertEqual(self.options_of("--gpu-buffers", "/dev/shm/"), "buffers=/dev/shm\n")

    def test_buffers_of_the_gpu_go_only_where_a_folder_is(self):
        for place in ("nowhere", "/dev/null"):
            result = self.trainprof("run", "--gpu-buffers", place, "--", "true")
            self.assertEqual(result.returncode, 125)
            self.assertIn(f"--gpu-buffers {place}: no such folder".encode(), result.stderr)

    def test_a_tool_that_holds_cuda_keeps_it_and_the_host_is_recorded(self):
        held = self.environment(CUDA_INJECTION64_PATH="/opt/nsight-systems/libToolsInjection64.so")
        result = self.trainprof("run", "--", "printenv", "CUDA_INJECTION64_PATH", "TRAINPROF_DIR", env=held)
        self.assertEqual(result.stdout.split(b"\n")[0], held["CUDA_INJECTION64_PATH"].encode())
        self.assertEqual(result.stdout.split(b"\n")[1].decode(), self.the_run_folder())
        self.assertIn(b"GPU work is not recorded: CUDA is held by Nsight Systems", result.stderr)

    def test_card_keeps_to_20_lines_and_names_the_folder(self):
        card = self.trainprof("run", "--", "true").stderr.decode()
        self.assertLessEqual(card.count("\n"), 20)
        self.assertIn(self.the_run_folder(), card)
        self.assertIn("dropped: 0", card)
        self.assertNotIn("\x1b", card)

    def test_command_lines_in_the_card_are_quoted_for_a_shell(self):
        folder = "my $(run)'s `d`"
        card = self.trainprof("run", "-o", folder, "--", "sh", "-c", "exit 0").stderr.decode()
        self.assertTrue(card.startswith("trainprof: sh -c 'exit 0' ran "), card)
        line = next(line for line in card.splitlines() if line.startswith("in "))[3:]
        shown = self.run_plain(["sh", "-c", f"printf %s {line}"]).stdout.decode()
        self.assertEqual(shown, self.path(folder))
        card = self.trainprof("run", "-o", "a/../b//c/./d", "--", "true").stderr.decode()
        self.assertIn("\nin " + self.path("b/c/d") + "\n", card)

    def test_without_a_driver_the_gpu_is_noted_once_and_shortly(self):
        card = self.trainprof("run", "--", "true").stderr.decode()
        if os.path.exists("/proc/driver/nvidia") or os.path.exists("/sys/module/nvidia"):
            self.assertNotIn("no NVIDIA driver", card)
            self.assertLessEqual(card.count("note: GPU: "), 1, card)
            return
        notes = [line for line in card.splitlines() if "GPU" in line or "NVIDIA" in line]
        self.assertEqual(notes, ["note: GPU: no NVIDIA driver here; the host is recorded without it"])

    def test_quiet_prints_nothing(self):
        self.assertEqual(self.trainprof("run", "-q", "--", "true").stderr, b"")


class CommandLine(TrainprofTest):
    def test_help_lists_the_commands_and_each_ones_examples(self):
        overview = self.trainprof("--help")
        self.assertEqual(overview.returncode, 0)
        for command in ("run", "doctor"):
            self.assertIn(f"\n  {command} ".encode(), overview.stdout)
            for words in (["help", command], [command, "--help"]):
                result = self.trainprof(*words)
                self.assertEqual(result.returncode, 0)
                self.assertIn(b"Examples:\n  trainprof " + command.encode(), result.stdout)

    def test_version(self):
        self.assertRegex(self.trainprof("--version").stdout.decode(), r"^trainprof \d+\.\d+\.\d+\n$")

    def test_unknown_command_suggests_the_nearest(self):
        result = self.trainprof("docter")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"'doctor'", result.stderr)
        self.assertEqual(self.trainprof().returncode, 2)

    def refusal(self, *words, code=2):
        result = self.trainprof(*words)
        self.assertEqual((result.returncode, result.stdout), (code, b""), words)
        return result.stderr.decode()

    def test_words_of_other_tools_lead_to_the_right_command(self):
        for word, command in (("record", "run"), ("profile", "run"), ("stat", "report"),
                              ("open", "view"), ("show", "view"), ("analyse", "analyze"),
                              ("convert", "export"), ("gate", "check"), ("rep", "report"),
                              ("compare", "diff"), ("rules", "explain"), ("vs", "diff")):
            self.assertIn(f"there is no command '{word}'. Did you mean '{command}'", self.refusal(word))
            self.assertIn(f"Did you mean '{command}'", self.refusal("help", word))

    def test_a_file_or_a_program_for_a_command_leads_to_what_is_done_with_it(self):
        for name in ("train.py", "trace.json", "my trace.json"):
            open(self.path(name), "wb").close()
        self.assertIn("trainprof run -- python train.py --lr '1 e'",
                      self.refusal("train.py", "--lr", "1 e"))
        self.assertIn("Did you mean: trainprof report trace.json", self.refusal("trace.json"))
        self.assertIn("trainprof report 'my trace.json'", self.refusal("my trace.json"))
        self.assertIn("trainprof run -- env FOO=1 x", self.refusal("env", "FOO=1", "x"))
        self.assertIn("trainprof run -- python x", self.refusal("--", "python", "x"))

    def test_an_unknown_option_is_blamed_and_the_nearest_suggested(self):
        for words, option, meant in (
                (("report", "--formt", "json", "x"), "--formt", "'--format'"),
                (("report", "x", "--fromat=json"), "--fromat", "'--format'"),
                (("report", "-format", "json", "x"), "-format", "'--format'"),
                (("check", "--exit-zer", "x"), "--exit-zer", "'--exit-zero'"),
                (("doctor", "--forma", "json"), "--forma", "'--format'"),
                (("report", "--merge", "x"), "--merge", "'trainprof export'")):
            message = self.refusal(*words)
            self.assertIn(f"there is no option '{option}'", message)
            self.assertIn(meant, message)
        message = self.refusal("run", "--stpes", "1:2", "--", "true", code=125)
        self.assertIn("there is no option '--stpes'. Did you mean '--steps'?", message)
        message = self.refusal("report", "--qqqqqqqq", "x")
        self.assertIn("there is no option '--qqqqqqqq'.\n", message)
        self.assertIn("did you mean 'json'?", self.refusal("report", "-f", "jsn=x", "one"))
        self.assertIn("'two' is one argument too many", self.refusal("report", "one", "two"))

    def test_values_of_options_are_not_taken_for_options(self):
        result = self.trainprof("run", "-q", "--capture", "nvtx:-x", "--", "printenv", "TRAINPROF_OPTIONS")
        self.assertEqual(result.stdout, b"capture=-x\n")
        self.assertEqual(self.trainprof("run", "-qo", "-dash", "--", "true").returncode, 0)
        self.assertTrue(os.path.isdir(self.path("-dash")))

    def test_help_of_view_needs_no_viewer(self):
        alone = os.path.join(self.folder, "bin")
        os.mkdir(alone)
        program = shutil.copy(harness.TRAINPROF, alone)
        for words in (["help", "view"], ["view", "--help"], ["view", "-h"]):
            result = self.run_plain([program, *words], env=self.environment(PATH=alone))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn(b"Usage: trainprof view", result.stdout)
            self.assertIn(b"scripts/install_packages.sh viewer", result.stdout)
        self.assertEqual(self.run_plain([program, "view", "x"], env=self.environment(PATH=alone)).returncode, 2)


if __name__ == "__main__":
    harness.main()
