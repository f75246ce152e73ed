"""trainprof run --ops: torch's operators and modules, against torch.profiler's count of them.

Environment, beside the harness's: TRAINPROF_TEST_TORCH, a Python that has PyTorch.
"""
import json
import os

import harness
from python_test import SCRIPTS, TORCH_PYTHON, Torch

ODD = '''
import torch
class Shy(torch.nn.Module):
    def named_modules(self, *arguments, **keywords): raise RuntimeError("none of yours")
    def forward(self, x): return x + 1
class Unfinished(torch.nn.Module):
    def __init__(self): pass
class Fails(torch.nn.Module):
    def forward(self, x): raise KeyError(x)
print(Shy()(1))
for kind in (Unfinished, Fails):
    try:
        kind()(2)
    except Exception as error:
        print(type(error), error)
print(sum(torch.nn.Identity()(i) for i in range(20000)))
with torch.autograd.profiler.profile() as profile:
    torch.zeros(2) + 1
print(sum(event.name == "aten::add" for event in profile.function_events))
with torch.autograd.profiler.emit_itt():
    torch.zeros(2) + 1
try:
    with torch.profiler.profile() as outer:
        torch.autograd.profiler.profile().__enter__()
except RuntimeError as error:
    print("refused")
'''
SCRIPT = os.path.join(SCRIPTS, "operators.py")


def comparable(counts):
    """Of a step, of what stands within the model's work: torch.profiler adds rows of its own, and a loader's differ by
    where a step begins."""
    return {name: count for name, count in counts.items()
            if name.startswith(("aten::", "autograd::engine::", "AddmmBackward", "ReluBackward"))}


class Ops(Torch):
    _plain = None

    def profiled_alone(self):
        """What the script prints without us, and what torch.profiler counts in it."""
        if Ops._plain is None:
            result = self.run_plain([TORCH_PYTHON, SCRIPT, "plain.json"])
            self.assertEqual(result.returncode, 0, result.stderr)
            Ops._plain = result.stdout, comparable(json.loads(self.read("plain.json")))
        return Ops._plain

    def ops_of(self, *arguments):
        """What the script prints, and the rank of its report."""
        command = [TORCH_PYTHON, SCRIPT, *arguments]
        result = self.trainprof("run", "-o", "run", "--force", "--ops", "--", *command)
        self.assertEqual(result.returncode, 0, result.stderr)
        rank = self.rank()
        self.assertNotIn("python.unwatched", self.report["environment"])
        return result, rank

    def test_operators_and_modules_are_counted_as_torch_does(self):
        printed, truth = self.profiled_alone()
        result, rank = self.ops_of()
        self.assertEqual(result.stdout, printed)
        steps = rank["steps"]["count"]
        found = comparable({it["name"]: it["count"] / steps for it in rank["operators"]})
        self.assertGreater(len(truth), 20)
        self.assertEqual(found, truth)
        modules = {it["name"]: it["count"] / steps for it in rank["modules"]}
        linear = {"nn.Module: blocks.%d.linear (Linear)" % i: 1 for i in range(3)}
        expected = {"nn.Module: Model": 1, "nn.Module: head (Linear)": 1, **linear,
                    **{"nn.Module: blocks.%d (Block)" % i: 1 for i in range(3)},
                    **{"nn.Module: blocks.%d.activation (ReLU)" % i: 1 for i in range(3)}}
        self.assertEqual(modules, expected)
        own = {it["name"]: it["own_ns"] for it in rank["modules"]}
        whole = {it["name"]: it["whole_ns"] for it in rank["modules"]}
        for i in range(3):
            block = "blocks.%d" % i
            parts = whole["nn.Module: %s.linear (Linear)" % block] + whole["nn.Module: %s.activation (ReLU)" % block]
            self.assertEqual(own["nn.Module: %s (Block)" % block], whole["nn.Module: %s (Block)" % block] - parts)
        # The phases are what they are without.
        self.assertGreater(rank["operator_recording"]["ranges"], 20 * steps)
        account = {it["class"]: it["fraction"] for it in rank["host_account"]}
        self.assertAlmostEqual(sum(account.values()), 1)
        for phase in ("forward", "backward", "optimizer"):
            self.assertGreater(account[phase], 0.02, phase)

    def test_a_profile_of_the_scripts_own_has_all_it_would(self):
        printed, truth = self.profiled_alone()
        result, rank = self.ops_of("profiled.json")
        self.assertEqual(result.stdout, printed)
        self.assertEqual(comparable(json.loads(self.read("profiled.json"))), truth)
        # Outside of it ours goes on, also behind it.
        counts = {it["name"]: it["count"] for it in rank["operators"]}
        self.assertLess(rank["steps"]["count"] - 10, counts["aten::addmm"] / 4 + 3)
        self.assertLess(counts["aten::addmm"] / 4, rank["steps"]["count"] - 5)

    def test_compiled_graphs_are_the_same(self):
        plain = self.plain("profiled.py")
        result = self.trainprof("run", "-o", "run", "--ops", "--", TORCH_PYTHON, "profiled.py")
        self.assertEqual(result.stdout.decode(), plain.stdout.decode())

    def test_modules_of_any_kind_are_called_as_ever(self):
        with open(self.path("odd.py"), "w", encoding="utf-8") as file:
            file.write(ODD)
        plain = self.plain("odd.py")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        result = self.trainprof("run", "-o", "run", "--ops", "--", TORCH_PYTHON, "odd.py")
        self.assertEqual(result.stdout.decode(), plain.stdout.decode())

    def test_without_the_option_nothing_of_it_is_there(self):
        self.assertEqual(self.trainprof("run", "-o", "run", "--", TORCH_PYTHON, SCRIPT).returncode, 0)
        self.assertNotIn("operators", self.rank())

    def test_another_listener_of_itt_stays(self):
        result = self.trainprof("run", "-o", "run", "--ops", "--", "env",
                                env=self.environment(INTEL_LIBITTNOTIFY64="/opt/vtune/libittnotify_collector.so"))
        self.assertIn(b"INTEL_LIBITTNOTIFY64=/opt/vtune/libittnotify_collector.so", result.stdout)
        self.assertIn(b"--ops: operators are not recorded: ITT is held by", result.stderr)
        self.assertNotIn(b"TRAINPROF_OPS", result.stdout)


if __name__ == "__main__":
    harness.main()
