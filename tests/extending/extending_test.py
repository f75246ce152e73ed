"""The examples of docs/extending.md at work: a file of the example's format becomes a report of the example renderer
with the finding of the example rule, an export, a Chrome trace, and comes back equal."""
import json
import os
import subprocess
import tempfile
import unittest

STEPS = 6


def step_log():
    """Steps in which the host launches kernels of 2 us one after the other."""
    lines = ["steplog 1"]
    for step in range(STEPS):
        begin = 1000 * step
        lines.append(f"range 100 step {begin} 900")
        for i in range(8):
            at, number = begin + 100 * i, 100 * step + i
            lines += [f"call 100 cudaLaunchKernel {at} 50 {number}", f"kernel 7 a<b {at + 60} 2 {number}"]
    return "\n".join(lines) + "\n"


class Extending(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.log = self.write("a.steplog", step_log())

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def run_it(self, *arguments, program="TRAINPROF_EXTENDED", code=0):
        done = subprocess.run([os.environ[program], *arguments], capture_output=True, text=True, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout + done.stderr

    def report(self, path):
        return json.loads(self.run_it("report", path, "--format", "json"))

    def test_the_importer_is_recognised_by_content_and_names_the_report(self):
        report = self.report(self.write("any_name", step_log()))
        self.assertEqual(report["input"]["kind"], "steplog")
        self.assertEqual(report["ranks"][0]["steps"]["count"], STEPS)

    def test_a_folder_of_its_files_is_a_job(self):
        report = self.report(self.folder)
        self.assertEqual([rank["rank"] for rank in report["ranks"]], [0])

    def test_the_rule_finds(self):
        codes = [finding["code"] for finding in self.report(self.log)["findings"]]
        self.assertIn("TP901", codes)

    def test_the_renderer_shows_the_finding_and_draws_the_trace(self):
        page = self.run_it("report", self.log, "--format", "bars")
        self.assertIn("<p>TP901: Short kernels: ", page)
        self.assertEqual(page.count("<rect "), 8 * STEPS)
        self.assertIn("<title>a&#60;b</title>", page)

    def test_what_is_not_a_line_is_counted(self):
        path = self.write("b.steplog", step_log() + "kernel seven\n")
        self.assertEqual([(item["kind"], item["count"]) for item in self.report(path)["quality"]
                          if item["kind"] == "unparsable_event"], [("unparsable_event", 1)])

    def test_an_export_comes_back_equal(self):
        self.run_it("export", self.log, "-o", "b.steplog")
        with open(os.path.join(self.folder, "b.steplog"), encoding="utf-8") as file:
            self.assertEqual(sorted(file.read().split("\n")), sorted(step_log().split("\n")))

    # Columns get Kineto's words and arguments, so that the importer need not know them.
    def test_as_a_chrome_trace_it_gives_the_same_findings(self):
        self.run_it("export", self.log, "-o", "b.json")
        first, again = self.report(self.log), self.report(os.path.join(self.folder, "b.json"))
        self.assertEqual(again["input"]["kind"], "kineto")
        for member in ("account", "steps", "devices"):
            self.assertEqual(first["ranks"][0].get(member), again["ranks"][0].get(member), member)
        self.assertEqual([f["title"] for f in first["findings"]], [f["title"] for f in again["findings"]])

    def test_messages_name_the_formats(self):
        self.assertIn("*.steplog", self.run_it("export", "--help"))
        self.assertIn("bars (a page", self.run_it("report", "--help"))
        self.assertIn("steplog (step logs", self.run_it("report", self.write("x", "?"), code=4))

    def test_the_program_itself_knows_none_of_them(self):
        said = self.run_it("report", self.log, program="TRAINPROF", code=4)
        self.assertIn("not a trace that trainprof knows", said)


if __name__ == "__main__":
    unittest.main(verbosity=2)
