"""The report's formats for other tools: by their schemas, by the rules of those who read them, and with names that
are meant to break out of them."""
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import harness
import published
from harness import TrainprofTest
from traces import training

# What a trace may call a function, and no format may obey.
HOSTILE = "a<b>&\"'|`x`]]>%0A::error::\x1b[2J\u202e@all --> ://x"


class FormatsTest(TrainprofTest):
    def put(self, name, content):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(content if isinstance(content, str) else json.dumps(content))
        return self.path(name)

    def render(self, path, *formats):
        """Each format's text, of what `check` says."""
        flags = [f"--format={name}={self.path('out.' + name)}" for name in formats]
        result = self.trainprof("check", path, *flags)
        self.assertIn(result.returncode, (0, 1, 3), result.stderr)
        texts = []
        for name in formats:
            with open(self.path("out." + name), encoding="utf-8") as file:
                texts.append(file.read())
        return texts

    def traces(self):
        """One that passes, one that fails, one in doubt, one of hostile names, several ranks, and broken budgets."""
        yield "passes", self.put("ok.json", training())
        yield "fails", self.put("bad.json", training(wait_us=500))
        yield "doubt", self.put("cut.json", json.dumps(training(wait_us=500))[:-200])
        yield "hostile", self.put("hostile.json", hostile())
        os.makedirs(self.path("job"), exist_ok=True)
        self.put("job/rank0.json", training(wait_us=500, rank=0))
        self.put("job/rank1.json", training(wait_us=600, rank=1))
        yield "ranks", self.path("job")
        self.put(".trainprof.toml", "[budgets.step_time_ms]\nmax = 0.1\n[budgets.idle]\nmax = 0.1\n"
                 "[budgets.idle_input_wait]\nmax = 0.1\n[budgets.peak_gpu_memory]\nmax = 1\n"
                 "[[suppress]]\nrule = 'TP101'\nreason = 'r'\n")
        yield "budgets", self.path("bad.json")
        os.unlink(self.path(".trainprof.toml"))


def hostile():
    trace = training(wait_us=500)
    for begin in [e["ts"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")]:
        trace["traceEvents"].append(
            {"ph": "X", "cat": "python_function", "name": f"/x/{HOSTILE}.py(3): {HOSTILE}", "pid": 100, "tid": 1,
             "ts": begin, "dur": 999, "args": {"Python id": begin + 1, "Python parent id": None}})
    return trace


class Formats(FormatsTest):
    def test_github_annotations_are_escaped_and_few(self):
        for name, path in self.traces():
            with self.subTest(name):
                lines = self.render(path, "github")[0].splitlines()
                commands = [line for line in lines if "::" in line[:2]]
                for line in commands:
                    match = re.fullmatch(r"::(error|warning|notice) ([^:]*)::(.*)", line)
                    self.assertIsNotNone(match, line)
                    for part in match[2].split(","):
                        self.assertRegex(part, r"^(file|line|title)=[^\r\n]+$")
                    # A percent sign stands for itself nowhere.
                    for escape in re.findall("%(..)", match[2] + match[3]):
                        self.assertIn(escape, ("25", "0D", "0A", "3A", "2C"))
                self.assertEqual(len(lines) - len(commands), 1, lines)
                for kind in ("error", "warning", "notice"):
                    self.assertLessEqual(sum(c.startswith(f"::{kind}") for c in commands), 10)

    def test_ranges_without_a_file_are_said_once(self):
        trace = training(wait_us=500)
        for i, event in enumerate(e for e in list(trace["traceEvents"]) if e["name"].startswith("ProfilerStep")):
            trace["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": "part_" + "abcdefghijklmnopqrst"[i],
                                         "pid": 100, "tid": 1, "ts": event["ts"] + 1, "dur": 400})
        trace["traceEvents"] = [e for e in trace["traceEvents"] if not e["name"].startswith("enumerate")]
        path = self.put("parts.json", trace)
        github, markdown, sarif = self.render(path, "github", "markdown", "sarif")
        places = [r["ruleId"] for r in json.loads(sarif)["runs"][0]["results"]].count("TP203")
        self.assertGreater(places, 10)
        self.assertEqual(github.count("title=TP203"), 1, github)
        self.assertEqual(markdown.count("TP203"), 1)
        self.assertIn(f" and {places - 1} more |", markdown)
        self.assertIn(f"... and {places - 5} more", self.trainprof("check", path).stdout.decode())

    def test_gitlab_has_what_its_contract_asks_for(self):
        """All that GitLab's own check of a report (app/validators/json_schemas/codeclimate.json) asks for, and its manual."""
        for name, path in self.traces():
            with self.subTest(name):
                issues = json.loads(self.render(path, "gitlab")[0])
                for issue in issues:
                    self.assertEqual(set(issue), {"description", "check_name", "fingerprint", "severity", "location"})
                    self.assertIn(issue["severity"], ("info", "minor", "major", "critical", "blocker"))
                    self.assertGreater(issue["location"]["lines"]["begin"], 0)
                    self.assertTrue(issue["location"]["path"] and issue["description"])
                    for text in (issue["description"], issue["fingerprint"], issue["severity"], issue["location"]["path"]):
                        self.assertIsInstance(text, str)
                    self.assertIsInstance(issue["location"]["lines"]["begin"], int)
                prints = [issue["fingerprint"] for issue in issues]
                self.assertEqual(len(prints), len(set(prints)))
                self.assertEqual(any(i["severity"] == "critical" for i in issues), name not in ("passes", "doubt"), issues)

    def test_the_json_of_a_check_is_valid_by_our_schema(self):
        schema = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "report.schema.json")
        for name, path in self.traces():
            with self.subTest(name):
                text = self.render(path, "json")[0]
                self.assertEqual(published.valid(schema, self.put("x.json", text)), "")
                self.assertIn("result", json.loads(text)["gate"])

    def test_junit_counts_its_cases(self):
        for name, path in self.traces():
            with self.subTest(name):
                root = xml.etree.ElementTree.fromstring(self.render(path, "junit")[0])
                suite = root.find("testsuite")
                cases = suite.findall("testcase")
                self.assertEqual(int(suite.get("tests")), len(cases))
                for kind, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                    self.assertEqual(int(suite.get(kind)), len(suite.findall(f"testcase/{tag}")), kind)
                names = [(case.get("classname"), case.get("name")) for case in cases]
                self.assertEqual(len(names), len(set(names)))
                self.assertEqual(bool(int(suite.get("errors"))), name in ("doubt", "budgets"))

    def test_markdown_shows_names_and_obeys_none(self):
        text = self.render(self.put("hostile.json", hostile()), "markdown")[0]
        for part in ("\x1b", "<b>", "`x`", "@all", "://x", "\u202e", "]]>"):
            self.assertNotIn(part, text)
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        self.assertEqual(len({line.count("|") for line in rows if "TP101" in line}), 1)
        self.assertEqual(len(re.findall(r"(?<!\\)\|", next(line for line in rows if "TP101" in line))), 5)

    def test_markdown_fits_a_summary(self):
        trace = training(wait_us=500)
        step = 0
        for event in list(trace["traceEvents"]):
            if event["name"].startswith("ProfilerStep"):
                step += 1
                trace["traceEvents"].append(
                    {"ph": "X", "cat": "python_function", "name": f"/x/{'n' * 60000}{step}.py(3): f", "pid": 100, "tid": 1,
                     "ts": event["ts"], "dur": 999, "args": {"Python id": step, "Python parent id": None}})
        text = self.render(self.put("long.json", trace), "markdown")[0]
        self.assertLess(len(text.encode()), 900 * 1024 + 1)
        self.assertIn("TP101", text)

    def test_places_are_below_the_current_folder_where_the_files_are(self):
        trace = hostile()
        for event in trace["traceEvents"]:
            if event["cat"] == "python_function":
                event["name"] = "/home/ci/checkout/src/train.py(3): main"
        os.makedirs(self.path("src"))
        self.put("src/train.py", "\n\n\n")
        sarif, gitlab, github = self.render(self.put("t.json", trace), "sarif", "gitlab", "github")
        result = json.loads(sarif)["runs"][0]["results"][0]
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"], {"uri": "src/train.py", "uriBaseId": "%SRCROOT%"})
        self.assertEqual(place["region"]["startLine"], 3)
        self.assertEqual(json.loads(gitlab)[0]["location"], {"path": "src/train.py", "lines": {"begin": 3}})
        self.assertIn("::error file=src/train.py,line=3,title=TP101 input-bound::", github)

    def test_a_line_that_is_ignored_hides_no_other_of_the_same_function(self):
        trace = training(wait_us=500)
        for event in list(trace["traceEvents"]):
            if event["name"].startswith("ProfilerStep"):
                line = 3 if event["ts"] % 2000 == 0 else 4
                trace["traceEvents"].append(
                    {"ph": "X", "cat": "python_function", "name": f"/x/train.py({line}): main", "pid": 100, "tid": 1,
                     "ts": event["ts"], "dur": 999, "args": {"Python id": event["ts"] + 1, "Python parent id": None}})
        self.put("train.py", "\n\nf()  # trainprof: ignore[TP101]\ng()\n")
        sarif = json.loads(self.render(self.put("two.json", trace), "sarif")[0])
        results = sarif["runs"][0]["results"]
        self.assertEqual([r["properties"]["gate"] for r in results if r["ruleId"] == "TP101"], ["failed"], results)
        self.assertNotIn("suppressions", results[0])

    def test_the_same_finding_has_the_same_fingerprint_after_an_edit(self):
        def prints(line, wait):
            trace = hostile()
            for event in trace["traceEvents"]:
                if event["cat"] == "python_function":
                    event["name"] = f"/a/train.py({line}): main"
            trace["traceEvents"] = [e for e in trace["traceEvents"]] if wait == 500 else training(wait_us=wait)["traceEvents"] + [
                e for e in trace["traceEvents"] if e["cat"] == "python_function"]
            sarif = json.loads(self.render(self.put("t.json", trace), "sarif")[0])
            return [r["partialFingerprints"] for r in sarif["runs"][0]["results"]]
        self.assertEqual(prints(3, 500), prints(30, 400))

    def test_a_broken_budget_stands_at_its_line_of_the_policy(self):
        self.put(".trainprof.toml", "schema = 1\n\n[budgets.step_time_ms]\nmax = 0.1\n")
        path = self.put("ok.json", training())
        said = self.trainprof("check", path, "--format", "github=-", "--budget", "input_wait=0.001").stdout.decode()
        self.assertIn("::error file=.trainprof.toml,line=3,title=TP801", said)
        self.assertIn("::error title=TP807", said)  # the command line has no file


class Schemas(FormatsTest):
    """By the schemas that the formats' owners publish."""
    schemas = {}

    def test_sarif_is_valid(self):
        for name, path in self.traces():
            with self.subTest(name):
                text = self.render(path, "sarif")[0]
                self.assertEqual(published.valid(self.schemas["sarif-schema.json"], self.put("x.sarif", text)), "")
                results = json.loads(text)["runs"][0]["results"]
                self.assertEqual(bool(results), name not in ("passes", "doubt"))

    def test_junit_is_valid(self):
        xmllint = shutil.which("xmllint")
        self.assertIsNotNone(xmllint, "apt-get install libxml2-utils")
        for name, path in self.traces():
            with self.subTest(name):
                self.render(path, "junit")
                result = subprocess.run([xmllint, "--noout", "--schema", self.schemas["junit-4.xsd"],
                                         self.path("out.junit")], capture_output=True, check=False)
                self.assertEqual(result.returncode, 0, result.stderr.decode()[-3000:])


if __name__ == "__main__":
    if "Schemas" in sys.argv:
        Schemas.schemas = published.fetch_or_skip("sarif-schema.json", "junit-4.xsd")
    harness.main()
