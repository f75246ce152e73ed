"""The page that `--format html` writes: complete without scripts and styles, safe with any name, the JSON's numbers."""
import base64
import hashlib
import html.parser
import json
import os
import re

import harness
from formats_test import FormatsTest, hostile
from traces import trace, training

MOST_BYTES = 2_000_000
EMPTY = {"meta", "br"}
KNOWN = EMPTY | set("path rect html head title style body header p b h1 h2 h3 main section article dl dt dd code pre ul li div svg "
                    "defs pattern text table caption thead tbody tfoot tr th td details summary script".split())


class Page(html.parser.HTMLParser):
    """Its texts and elements; complains of what does not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.rows, self.words, self.raw = [], [], [], [], {}
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag == "td":
            self.rows[-1].append("")
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, (tag, self.open)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("style", "script"):
            self.raw[self.open[-1]] = data
        else:
            self.words.append(data)
        if "td" in self.open:
            self.rows[-1][-1] += data

    def text(self):
        return "".join(self.words)


class Html(FormatsTest):
    def pages(self):
        for name, path in self.traces():
            yield name, path, self.render(path, "html")[0]
        samples = os.environ["TRAINPROF_SAMPLES"]  # with work that no phase names, which no trace above has
        for name in sorted(os.listdir(samples)):
            if os.path.isdir(os.path.join(samples, name)):
                yield name, name, self.render(os.path.join(samples, name, "recording"), "html")[0]

    def test_any_trace_makes_a_page_that_nests_and_is_small(self):
        for name, _, text in self.pages():
            with self.subTest(name):
                page = Page(text)
                self.assertLess(len(text.encode()), MOST_BYTES)
                self.assertLessEqual({tag for tag, _ in page.tags}, KNOWN)
                for tag, attributes in page.tags:
                    self.assertNotIn("style", attributes)
                    self.assertFalse([key for key in attributes if key.startswith("on") or key in ("src", "href")], tag)
                self.assertNotRegex(re.sub(r"<(style|script)>.*?</\1>", "", text, flags=re.S), r"[\x00-\x09\x0b-\x1f\u202e]")

    def test_its_policy_allows_its_own_style_and_script_alone(self):
        page = Page(self.render(self.put("ok.json", training()), "html")[0])
        policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
        self.assertIn("default-src 'none'", policy)
        for part, tag in (("style-src", "style"), ("script-src", "script")):
            digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
            self.assertIn(f"{part} 'sha256-{digest}';", policy)

    def test_sentences_of_one_line_each_stay_apart(self):
        sample = os.path.join(os.environ["TRAINPROF_SAMPLES"], "gpu_trainer_workers0", "recording")
        self.assertIn("set aside<br>\nWhat the GPU did", self.render(sample, "html")[0])

    def test_a_hostile_name_is_text(self):
        text = self.render(self.put("hostile.json", hostile()), "html")[0]
        self.assertNotIn("a<b>", text)
        self.assertNotIn("<b>&", text)
        self.assertIn("a<b>", Page(text).text())

    def test_its_numbers_are_the_jsons(self):
        path = self.put("bad.json", training(wait_us=500))
        text, report = self.render(path, "html", "json")
        page, report = Page(text), json.loads(report)
        self.assertIn(report["verdict"], page.text())
        rank = report["ranks"][0]
        self.assertIn(f"median {rank['steps']['median_ms']:.3f} ms", page.text())
        shown = {(row[1], row[2]) for row in page.rows if len(row) == 3}
        lines = [line for account in [rank["host_account"]] + [d["account"] for d in rank["devices"]] for line in account]
        self.assertTrue(any(line["total_ns"] for line in lines))
        for line in lines:
            if line["total_ns"]:
                self.assertIn((f"{line['ms_per_step']:.3f}", f"{100 * line['fraction']:.1f} %"), shown)
        self.assertEqual(page.text().count("together"), 2)
        self.assertIn((f"{rank['steps']['mean_ms']:.3f}", "100.0 %"), shown)
        for finding in report["findings"]:
            self.assertIn(finding["title"], page.text())
            self.assertIn(finding["advice"], page.text())

    def test_each_budget_says_whether_it_is_kept(self):
        self.put(".trainprof.toml", "[budgets.step_time_ms]\nmax = 0.1\n[budgets.input_wait]\nmax = 99\n"
                 "[budgets.peak_gpu_memory]\nmax = 1\n")
        text = Page(self.render(self.put("bad.json", training(wait_us=500)), "html")[0]).text()
        for said in ("broken: step time p50", "kept: input wait", "not known: peak memory of a GPU"):
            self.assertIn(said, text)

    def test_the_worst_and_a_typical_step_are_drawn(self):
        text = self.render(self.put("bad.json", training(wait_us=500)), "html")[0]
        self.assertIn("The longest step, number ", text)
        self.assertIn("why it was idle", text)
        self.assertGreater(text.count("<rect"), 10)

    def test_a_stream_has_no_timeline_and_says_so(self):
        path = self.put("ok.json", training())
        text = self.run_plain(["sh", "-c", f"cat '{path}' | '{harness.TRAINPROF}' report /dev/stdin -f html"]).stdout
        self.assertIn("which cannot be read twice", Page(text.decode()).text())

    def test_what_would_be_too_large_goes_without_pictures(self):
        text = self.render(self.put("large.json", crowded("k")), "html")[0]
        left_out = "The pictures are left out: the page would be too large."
        self.assertFalse(left_out in text)
        drawn = text.count("<rect")
        text = self.render(self.put("large.json", crowded("&" * 150)), "html")[0]
        page = Page(text)
        self.assertLess(len(text.encode()), MOST_BYTES)
        self.assertTrue(left_out in page.text())
        self.assertGreater(drawn, 10 * text.count("<rect"))
        self.assertTrue("gemm" in page.text())  # the tables are there


def crowded(name):
    """Steps whose kernels, each with a name of its own that begins so, fill four streams; one is longer."""
    events = training()["traceEvents"]
    events[-1]["dur"] += 100
    for i in range(20):
        for kernel in range(4 * 400):
            stream, place = kernel % 4, kernel // 4
            call = 1000 * i + 500 + place
            begin = 1000 * i + 20 + 2.4 * place
            correlation = 1000 + i * 1600 + kernel
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 100, "tid": 2, "ts": call,
                           "dur": 0.1, "args": {"correlation": correlation}})
            events.append({"ph": "X", "cat": "kernel", "name": f"{name}{kernel}", "pid": 0, "tid": 20 + stream, "ts": begin,
                           "dur": 2.3, "args": {"device": 0, "stream": 20 + stream, "correlation": correlation}})
    return trace(events)


if __name__ == "__main__":
    harness.main()
