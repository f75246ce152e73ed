"""The page of `--format html` as a browser shows it: nothing to complain of, complete without scripts, in both themes and
as wide as a telephone or a desk, printed, and by axe accessible. With the pictures written where TRAINPROF_KEEP_PAGES says."""
import base64
import contextlib
import http.server
import json
import os
import sys
import threading

import browser
import harness
import published
from formats_test import FormatsTest, hostile
from traces import training

WIDTHS = (375, 1440)
THEMES = ("light", "dark")
# How many of axe's rules hold for the page shown, and what is wrong with it.
AXE = """axe.run(document, {resultTypes: ["violations"]}).then((r) => [r.passes.length, r.violations
  .map((v) => v.id + ": " + v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + n.failureSummary).join(" | "))])"""
# Lightness of the background and of the text, 0..255.
SHADES = """["background-color", "color"].map((what) => getComputedStyle(document.body).getPropertyValue(what)
  .match(/[0-9.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part) / 3, 0))"""
# What a reader sees: all texts, and how much is drawn.
CONTENT = """[document.querySelector("header h1").textContent, document.querySelector("main").textContent,
  ["section", "article", "tr", "rect", "path", "details"].map((tag) => document.getElementsByTagName(tag).length)]"""


@contextlib.contextmanager
def served(path, policy):
    """The address at which this machine serves the file, under that policy."""
    with open(path, "rb") as file:
        content = file.read()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200 if self.path == "/page" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(content if self.path == "/page" else b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:  # a browser opens connections ahead
        server.block_on_close = False
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/page"
        finally:
            server.shutdown()


class HtmlBrowser(FormatsTest):
    axe = ""

    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()
        cls.addClassCleanup(cls.browser.close)

    def page(self, name, path):
        """The path of that trace's page."""
        self.render(path, "html")
        page = self.path(f"page-{name}.html")
        os.rename(self.path("out.html"), page)
        return page

    def rich(self):
        """Of the recording that has something in every section: the virtual GPU's demo."""
        return self.page("rich", os.path.join(os.environ["TRAINPROF_SAMPLES"], "virtual_gpu_habits", "recording"))

    def pages(self):
        for name, path in self.traces():
            yield name, self.page(name, path)
        yield "rich", self.rich()

    def keep(self, name):
        folder = os.environ.get("TRAINPROF_KEEP_PAGES")
        if folder:
            size = self.browser.call("Page.getLayoutMetrics")["cssContentSize"]
            shot = self.browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
            with open(os.path.join(folder, name + ".png"), "wb") as file:
                file.write(base64.b64decode(shot["data"]))

    def assert_quiet(self, page):
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual(self.browser.requests(), ["file://" + page])

    def in_each_view(self, look, **flags):
        """Calls look(name, page, width, theme) with each page open in each window and theme."""
        for name, page in self.pages():
            for width in WIDTHS:
                for theme in THEMES:
                    with self.subTest(name, width=width, theme=theme):
                        self.browser.open(page, width, theme=theme, **flags)
                        look(name, page, width, theme)

    def test_it_fits_every_window_and_theme(self):
        def look(name, page, width, theme):
            self.assertEqual(self.browser.run("[innerWidth, document.documentElement.scrollWidth]"), [width, width])
            background, text = self.browser.run(SHADES)
            self.assertGreater(text - background if theme == "dark" else background - text, 150)
            self.assert_quiet(page)
            self.keep(f"{name}-{width}-{theme}")
        self.in_each_view(look)

    def test_axe_finds_nothing(self):
        def look(*_):
            self.browser.run("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            self.browser.run(self.axe)
            passed, wrong = self.browser.run(AXE)
            self.assertEqual(wrong, [])
            self.assertGreater(passed, 10)
        self.in_each_view(look)

    def test_axe_would_find_a_fault(self):
        with open(self.rich(), encoding="utf-8") as file:
            text = file.read()
        broken = self.put("broken.html", text.replace('<html lang="en">', "<html>").replace("--fg:#16191d", "--fg:#e0e0e0"))
        self.browser.open(broken)  # the policy's hash is another one now, and so it has no colours
        self.browser.run(self.axe)
        self.assertIn("html-has-lang", " ".join(self.browser.run(AXE)[1]))

    def test_it_is_complete_without_scripts(self):
        def look(_, page, width, theme):
            self.assert_quiet(page)
            self.assertFalse(self.browser.run("Boolean(document.getElementById('theme'))"))
            self.assertEqual(self.browser.run("document.documentElement.scrollWidth"), width)
            shown = self.browser.run(CONTENT)
            self.browser.open(page, width, theme=theme)
            self.assertTrue(self.browser.run("Boolean(document.getElementById('theme'))"))
            self.assertEqual(shown, self.browser.run(CONTENT))
        self.in_each_view(look, scripts=False)

    def test_it_is_readable_where_a_server_forbids_styles_and_scripts(self):
        """As Jenkins serves artifacts."""
        with served(self.rich(), "sandbox; default-src 'none'; img-src 'self'; style-src 'self'") as address:
            for width in WIDTHS:
                self.browser.open(address, width)
                self.keep(f"jenkins-{width}")
                self.assertEqual(self.browser.run("document.styleSheets.length"), 0)
                self.assertFalse(self.browser.run("Boolean(document.getElementById('theme'))"))
                self.assertIn("median step", self.browser.run("document.querySelector('h1').innerText"))
                self.assertIn("input-bound", self.browser.run("document.querySelector('article h3').innerText"))
                fills = self.browser.run("[...new Set([...document.querySelectorAll('svg.lanes rect')].map((r) => getComputedStyle(r).fill))]")
                self.assertGreater(len(fills), 4)
                drawn = self.browser.run("document.querySelector('svg.lanes').getBoundingClientRect().height")
                self.assertGreater(drawn, 30)

    def test_every_column_sorts(self):
        self.browser.open(self.rich())
        tables = self.browser.run("document.querySelectorAll('table').length")
        self.assertGreater(tables, 3)
        for table in range(tables):
            at = f"document.querySelectorAll('table')[{table}]"
            cells = f"[...{at}.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))"
            before = self.browser.run(cells)
            for column in range(len(before[0])):
                with self.subTest(table=table, column=column):
                    head = f"{at}.querySelectorAll('th')[{column}]"
                    orders = []
                    for direction in ("descending", "ascending"):
                        self.browser.run(f"{head}.querySelector('button').click()")
                        self.assertEqual(self.browser.run(f"[...{at}.querySelectorAll('th')].map((h) => h.ariaSort)"),
                                         [direction if i == column else None for i in range(len(before[0]))])
                        rows = self.browser.run(cells)
                        self.assertEqual(sorted(rows), sorted(before))  # each row is still there, whole
                        orders.append([row[column] for row in rows])
                    self.assert_in_order(orders[1])
                    self.assert_in_order(orders[0][::-1])

    def assert_in_order(self, values):
        try:
            numbers = [float(value.split()[0]) if value else 0 for value in values]
        except ValueError:
            numbers = self.browser.run(f"((v) => v.every((x, i) => i === 0 || v[i - 1].localeCompare(x) <= 0))({json.dumps(values)})")
            self.assertTrue(numbers, values)
            return
        self.assertEqual(numbers, sorted(numbers))

    def test_the_theme_is_the_readers(self):
        page = self.rich()
        for theme in THEMES:
            self.browser.open(page, theme=theme)
            before = self.browser.run(SHADES)
            self.browser.run("document.getElementById('theme').click()")
            after = self.browser.run(SHADES)
            self.assertEqual(before[0] > before[1], after[0] < after[1])

    def test_it_prints_what_is_folded(self):
        page = self.rich()
        self.browser.open(page, theme="dark")
        folded = "[...document.querySelectorAll('details table')].map((t) => t.getBoundingClientRect().height)"
        self.browser.call("Emulation.setEmulatedMedia", media="print")
        self.addCleanup(self.browser.call, "Emulation.setEmulatedMedia", media="")
        heights = self.browser.run(folded)
        self.assertTrue(heights and all(height > 20 for height in heights), heights)
        background, text = self.browser.run(SHADES)
        self.assertGreater(background - text, 200)  # black on white, whatever the screen is
        printed = base64.b64decode(self.browser.call("Page.printToPDF")["data"])
        self.assertTrue(printed.startswith(b"%PDF"))
        if os.environ.get("TRAINPROF_KEEP_PAGES"):
            with open(os.path.join(os.environ["TRAINPROF_KEEP_PAGES"], "printed.pdf"), "wb") as file:
                file.write(printed)


if __name__ == "__main__":
    if not browser.PROGRAM:
        print("Skipped: no Chromium here: apt-get install chromium")
        sys.exit(published.SKIPPED)
    with open(published.fetch_or_skip("axe.min.js")["axe.min.js"], encoding="utf-8") as script:
        HtmlBrowser.axe = script.read()
    harness.main()
