"""The one table of an acceptance run: what was checked, on which program, what came out."""

import json

PASS, FAIL, OPEN, SKIP, FACT = "PASS", "FAIL", "open", "SKIP", "fact"


class Table:
    """Rows in the order in which they were found; each is printed and written at once, as a run may be cut off.
    `folder`: of results.json and results.md; None writes none."""

    def __init__(self, folder=None):
        self.folder, self.rows = folder, []

    def add(self, check, program, figure, bound="", verdict=FACT):
        self.rows.append(
            {"check": check, "program": program, "figure": figure, "bound": bound, "verdict": verdict}
        )
        print(_line(self.rows[-1]), flush=True)
        if self.folder:
            self._write()

    def judge(self, check, program, figure, bound, passed):
        self.add(check, program, figure, bound, PASS if passed else FAIL)

    def judge_at_most(self, check, program, interval, limit, unit, bound):
        """Passed or failed only where the whole interval lies on one side of the limit."""
        verdict = PASS if interval.high <= limit else FAIL if interval.low > limit else OPEN
        self.add(check, program, interval.text(unit), bound, verdict)

    def skip(self, check, program, reason):
        self.add(check, program, reason, "", SKIP)

    def count(self, verdict):
        return sum(row["verdict"] == verdict for row in self.rows)

    def _write(self):
        (self.folder / "results.json").write_text(json.dumps(self.rows, indent=1) + "\n")
        lines = ["| verdict | check | program | figure | bound |", "|---|---|---|---|---|"]
        for row in self.rows:
            cells = [row[key] for key in ("verdict", "check", "program", "figure", "bound")]
            lines.append("| " + " | ".join(cell.replace("|", "/") for cell in cells) + " |")
        (self.folder / "results.md").write_text("\n".join(lines) + "\n")


def _line(row):
    bound = f"   ({row['bound']})" if row["bound"] else ""
    return f"{row['verdict']:4}  {row['check']:26} {row['program']:24} {row['figure']}{bound}"
