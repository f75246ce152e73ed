"""trainprof run --memory: what loops keep, by line, against the scripts' own figures.

Environment, beside the harness's: TRAINPROF_TEST_TORCH, a Python that has PyTorch.
"""
import json
import os

import harness
from python_test import TORCH_PYTHON, Torch, line_of

try:
    import jsonschema
except ImportError:  # the report's own tests look at the schema where this Python has none
    jsonschema = None

LEAKS = "leaks.py"
MIB = 1 << 20
with open(os.path.join(os.path.dirname(__file__), "../../docs/report.schema.json"), encoding="utf-8") as schema:
    SCHEMA = json.load(schema)

TRACES_ITSELF = '''
import torch, tracemalloc
try:
    import torch._dynamo  # 1.13 has none
except ImportError:
    pass
tracemalloc.start(3)  # not while these are imported, which would take a minute
exec(compile(open("leaks.py").read(), "leaks.py", "exec"))
snapshot = tracemalloc.take_snapshot()
print(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit(), len(snapshot.traces) > 100)
'''
# In the middle of our window: what it sees is what it would see alone.
BEGINS_TO_TRACE = '''
import sys, tracemalloc, torch
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
for step in range(30):
    optimizer.param_groups[0]["params"][0].sum().backward()
    optimizer.step()
    if step == 15:
        print(tracemalloc.is_tracing())
        tracemalloc.start(2)
print(tracemalloc.is_tracing(), tracemalloc.get_traceback_limit(), tracemalloc.start.__module__)
'''
FORKS = '''
import os, torch, _tracemalloc
optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
for step in range(30):
    optimizer.param_groups[0]["params"][0].sum().backward()
    optimizer.step()
    if step == 15 and os.fork() == 0:
        for _ in range(20):
            optimizer.step()
        os._exit(3 if _tracemalloc.is_tracing() else 4)
print(os.waitstatus_to_exitcode(os.wait()[1]), _tracemalloc.is_tracing())
'''


class Memory(Torch):
    def environment(self, **changes):
        # What is freed goes back to the system at once: else a loop that grows fills such holes first.
        return super().environment(MALLOC_MMAP_THRESHOLD_="65536", **changes)

    def held(self, kind, *arguments):
        """The memory part of a report on a script that keeps such things, and its figure of resident memory."""
        result = self.trainprof("run", "-o", "run", "--force", "--memory", "--", TORCH_PYTHON, LEAKS, kind, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        rank = self.rank()
        self.assertNotIn("python.unwatched", self.report["environment"])
        if jsonschema:
            jsonschema.validate(self.report, SCHEMA)
        memory = rank["memory"]
        self.assertNotIn("missing", memory)
        resident, = memory["series"]
        self.assertEqual(resident["name"], "resident")
        self.result = result
        return memory, resident

    def lines(self, memory, kind):
        return {(os.path.basename(it["file"]), it["line"]): it for it in memory["kept"] if it["kind"] == kind}

    def grows_as_it_says(self, resident):
        truth = json.loads(self.read("truth.json"))
        self.assertGreater(truth, MIB / 2)
        self.assertAlmostEqual(resident["growth_bytes_per_step"], truth, delta=0.1 * truth)

    def test_a_tensor_that_each_step_keeps_is_named_with_its_line(self):
        memory, resident = self.held("tensors")
        self.grows_as_it_says(resident)
        kept, = self.lines(memory, "tensor").items()
        self.assertEqual(kept[0], (LEAKS, line_of(LEAKS, "# 2 MiB")))
        figures = [kept[1][name] for name in ("bytes_per_step", "per_step", "with_graph_per_step")]
        self.assertEqual(figures, [2 * MIB, 1, 0])
        self.assertEqual(kept[1]["device"], "cpu")
        text = self.trainprof("report", "run").stdout.decode()
        self.assertRegex(text, r"resident +\d.* at the peak, grows 2\.\d MiB/step")
        self.assertIn("leaks.py:%d keeps 1 tensor of 2.0 MiB each step" % line_of(LEAKS, "# 2 MiB"), text)
        self.assertIn("memory (resident) grows", self.result.stderr.decode())

    def test_kept_losses_keep_their_graphs(self):
        memory, resident = self.held("losses")
        self.grows_as_it_says(resident)
        made = self.lines(memory, "tensor")[LEAKS, line_of(LEAKS, "# what is kept of the losses")]
        self.assertGreaterEqual(made["per_step"], 1)
        self.assertGreaterEqual(made["with_graph_per_step"], 1)
        self.assertEqual(made["caller_line"], line_of(LEAKS, "kept.append(validate("))
        self.assertEqual(self.lines(memory, "graph"), {})

    def test_a_sum_of_losses_is_a_graph_that_grows(self):
        for kind, text, variable in (("total", "# in place", "total"), ("summed", "# anew", None)):
            memory, resident = self.held(kind)
            self.assertEqual(self.result.stdout, self.plain(LEAKS, kind).stdout)
            self.grows_as_it_says(resident)
            graph, = self.lines(memory, "graph").items()
            self.assertEqual(graph[0], (LEAKS, line_of(LEAKS, text)), kind)
            self.assertGreaterEqual(graph[1]["nodes_per_step"], 4)
            self.assertEqual(graph[1].get("variable"), variable)

    def test_pythons_own_objects_are_named_as_well(self):
        memory, resident = self.held("python")
        self.grows_as_it_says(resident)
        kept, = self.lines(memory, "python").items()
        self.assertEqual(kept[0], (LEAKS, line_of(LEAKS, "bytes(1000)")))
        self.assertAlmostEqual(kept[1]["bytes_per_step"], 1000 * 1033, delta=20_000)

    def test_a_healthy_loop_does_not_grow(self):
        for kind in ("nothing", "full"):
            memory, resident = self.held(kind)
            self.assertEqual((resident["growth_bytes_per_step"], memory["kept"]), (0, []), kind)
            self.assertGreater(resident["peak_bytes"], 100 * MIB)
            text = self.trainprof("report", "run").stdout.decode()
            self.assertIn("no growth (noise", text)
            self.assertRegex(text, r"--memory took \d+\.\d{3} ms/step, and \d+ ms in its search over 8 steps")
            # The search is no part of the steps; its last look is at the begin of one.
            steps = self.report["ranks"][0]["steps"]
            self.assertEqual(steps["searched_steps"], 9)
            self.assertEqual(steps["count"] + steps["warmup_steps"] + steps["searched_steps"], 59)

    def test_a_run_that_ends_early_says_what_was_not_looked_for(self):
        memory, resident = self.held("tensors", "8")
        self.assertEqual((memory["searched_steps"], memory["kept"]), (0, []))
        self.assertIsNone(resident["growth_bytes_per_step"])
        text = self.trainprof("report", "run").stdout.decode()
        self.assertIn("the run was too short to look for lines", text)
        # One that ends within the search says what it saw of it.
        memory, _ = self.held("tensors", "18")
        self.assertEqual((memory["searched_steps"], len(memory["kept"])), (6, 1))

    def test_the_script_ends_as_ever(self):
        result = self.trainprof("run", "-o", "failed", "--memory", "--", TORCH_PYTHON, "-c",
                                "import sys; sys.argv = ['', 'losses']; exec(open('leaks.py').read()); sys.exit(7)")
        self.assertEqual(result.returncode, 7)

    def run_code(self, code, *arguments):
        """What the code prints under --memory, which is what it prints without."""
        plain = self.run_plain([TORCH_PYTHON, "-c", code, *arguments])
        self.assertEqual(plain.returncode, 0, plain.stderr)
        result = self.trainprof("run", "-o", "run", "--force", "--memory", "--", TORCH_PYTHON, "-c", code, *arguments)
        self.assertEqual((result.returncode, result.stdout), (0, plain.stdout), result.stderr)
        return result.stdout.decode(), self.rank()["memory"]

    def test_the_scripts_own_tracing_is_left_alone(self):
        printed, memory = self.run_code(TRACES_ITSELF, "tensors")
        self.assertIn("True 3 True", printed)
        self.assertIn("the script uses tracemalloc itself", memory["missing"])
        self.assertEqual(memory["kept"], [])

    def test_tracing_that_the_script_begins_meanwhile_is_its_own(self):
        printed, memory = self.run_code(BEGINS_TO_TRACE)
        self.assertEqual(printed, "False\nTrue 2 _tracemalloc\n")
        self.assertIn("the script uses tracemalloc itself", memory["missing"])

    def test_a_forked_child_is_not_traced(self):
        printed, _ = self.run_code(FORKS)
        self.assertEqual(printed, "4 False\n")

    def on_cuda(self, *arguments):
        """As far as a stand-in of torch's allocator goes: no GPU."""
        command = [TORCH_PYTHON, "cuda_memory.py", *arguments]
        result = self.trainprof("run", "-o", "run", "--force", "--memory", "--", *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.decode(), self.rank()["memory"]

    def test_what_torch_holds_on_its_devices_is_told_of_those_in_use(self):
        printed, memory = self.on_cuda()
        series = {it["name"]: it for it in memory["series"]}
        self.assertEqual(set(series), {"resident", "cuda:1 allocated", "cuda:1 reserved"})
        allocated = series["cuda:1 allocated"]
        self.assertEqual((allocated["growth_bytes_per_step"], allocated["last_bytes"], allocated["peak_bytes"]),
                         (3 * MIB, (100 + 3 * 59) * MIB, (150 + 3 * 59) * MIB))
        self.assertEqual(series["cuda:1 reserved"]["growth_bytes_per_step"], 6 * MIB)
        kept, = memory["kept"]
        self.assertEqual((kept["kind"], kept["device"]), ("block", "cuda:1"))
        self.assertEqual((kept["file"], kept["line"]), ("/home/me/model.py", 31))
        self.assertEqual((kept["caller_file"], kept["caller_line"]), ("/home/me/train.py", 5))
        self.assertEqual((kept["bytes_per_step"], kept["per_step"]), (3 * MIB, 1))
        # Its history was recorded for the search alone.
        self.assertEqual(printed, "[(('state',), {'context': 'state', 'stacks': 'python'}), ((None,), {})]\n")
        text = self.trainprof("report", "run").stdout.decode()
        self.assertIn("model.py:31 (from train.py:5) allocated 1 block of 3.0 MiB each step on cuda:1", text)

    def test_a_history_that_the_script_records_stays_its_own(self):
        printed, memory = self.on_cuda("--recorded")
        self.assertEqual((printed, memory["kept"]), ("[]\n", []))
        self.assertIn("the script records their history itself", memory["missing"])

    def test_steps_that_the_script_names_count_as_well(self):
        code = ("import torch, trainprof\nkept = []\nfor i in range(60):\n    trainprof.step()\n"
                "    kept.append(torch.ones(512, 1024))\n")
        result = self.trainprof("run", "-o", "run", "--memory", "--", TORCH_PYTHON, "-c", code)
        self.assertEqual(result.returncode, 0, result.stderr)
        memory = self.rank()["memory"]
        self.assertAlmostEqual(memory["series"][0]["growth_bytes_per_step"], 2 * MIB, delta=0.2 * MIB)

    def test_without_the_option_nothing_of_it_is_there(self):
        self.record(LEAKS, "tensors")
        rank = self.rank()
        self.assertNotIn("memory", rank)
        self.assertNotIn("searched_steps", rank["steps"])


if __name__ == "__main__":
    harness.main()
