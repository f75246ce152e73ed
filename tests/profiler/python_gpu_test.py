"""Where Python made calls of CUDA that block, on the virtual GPU.

Environment, beside the harness's: TRAINPROF_TEST_TORCH, a Python that has PyTorch.
"""
import json
import os

import harness
from python_test import TORCH_PYTHON, Torch, line_of

VIRTUAL_GPU = os.environ["TRAINPROF_TEST_VIRTUAL_GPU"]


class Gpu(Torch):
    def environment(self, **changes):
        folder = os.pathsep.join(filter(None, (VIRTUAL_GPU, os.environ.get("LD_LIBRARY_PATH"))))
        return super().environment(LD_LIBRARY_PATH=folder, **changes)

    def test_syncs_and_tensors_made_on_the_cpu_have_their_python_stacks(self):
        self.record("gpu_calls.py", VIRTUAL_GPU)
        self.rank()
        self.assertNotIn("python.unwatched", self.report["environment"])
        for code, text, function in (("TP301", "# the loss is read", "Loss.item"),
                                     ("TP103", "# made on the CPU", "Loss.weigh")):
            finding = next(it for it in self.report["findings"] if it["code"] == code)
            where = finding["where"][0]
            self.assertEqual((os.path.basename(where["file"]), where["line"]),
                             ("gpu_calls.py", line_of("gpu_calls.py", text)), code)
            self.assertIn(function, where["function"])
        # The stack is the script's, up to its module.
        self.assertEqual(self.trainprof("export", "run", "-o", "trace.json").returncode, 0)
        calls = [it["args"]["Call stack"] for it in json.loads(self.read("trace.json"))["traceEvents"]
                 if it["name"].startswith("cudaMemcpyAsync") and "Call stack" in it.get("args", {})]
        self.assertGreater(len(calls), 30)
        item, module = line_of("gpu_calls.py", "# the loss is read"), line_of("gpu_calls.py", "loss.item()")
        stacks = {stack for stack in calls if "Loss.item" in stack}
        self.assertEqual(len(stacks), 1, stacks)
        self.assertRegex(stacks.pop(), r"gpu_calls\.py\(%d\): Loss\.item;[^;]*gpu_calls\.py\(%d\): <module>$" % (item, module))
        self.assertEqual([stack for stack in calls if "_PyEval" in stack], [])

    def test_hooks_that_python_was_kept_from_come_with_cuda(self):
        """-S alone would hide torch, too, where it is installed for a virtual environment. The interpreter is not the
        program itself, which would have the library from its beginning."""
        for option in ("-I", "-E"):
            command = ["sh", "-c", '"$@"; exit $?', "sh", TORCH_PYTHON, option, "gpu_calls.py", VIRTUAL_GPU]
            result = self.trainprof("run", "-o", "run", "--force", "--", *command)
            self.assertEqual(result.returncode, 0, result.stderr.decode())
            rank = self.rank()
            self.assertEqual(rank["steps"]["source"], "optimizer")
            self.assertIn("torch.version", self.report["environment"])
            account = {it["class"]: it["ms_per_step"] for it in rank["host_account"]}
            self.assertGreater(account["backward"], 0)
            self.assertNotIn(b"without trainprof's hooks", result.stderr)


if __name__ == "__main__":
    harness.main()
