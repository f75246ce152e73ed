#!/usr/bin/env python3
"""Checks the house: what a reader may rely on when opening any file of this project.

usage: check_house.py {layers|rooms|in_process|sizes|rules|leftovers|prints|pages|tables|types|format} [ROOT]

  layers     an include or a link never runs up the house
  rooms      no circle of includes between folders: each can be read with those below it
  in_process what runs inside the user's program includes itself, trace/recording/wire and little else
  sizes      no source file is longer than 500 lines without a reason
  rules      every rule has its test, its paragraph in docs/rules.md and a code of its own
  leftovers  every source file says first what it is for; nothing is left to do later;
             a fact of a recording is named in its header alone
  prints     text reaches people through trace/io/print.h alone
  pages      what documentation quotes (a file, a message, a kind of quality) is there, word by word
  tables     a described table of the trace is named by few files outside analysis/: the rest follows from its being listed
  types      no two headers define a type of the same name
  format     clang-format 14 would change nothing (exit 77, a skip, where there is none)

Exit status: 0 all well, 1 violations (one line each), 2 usage, 77 cannot be checked here.
"""
import os
import re
import shutil
import subprocess
import sys

SKIP = 77  # the SKIP_RETURN_CODE of the tests

# The floor of each folder; an include or a link goes down or stays. Folders of one floor do not
# see each other.
FLOORS = {"trace": 0, "collectors": 1, "analysis": 2, "viewer": 3, "profiler": 3}
# A user's program: it includes nothing of ours, and nothing of ours includes it.
APART = "instrumented_trainer"
# Tests and fuzzers stand outside and may include anything.
OUTSIDE = {"tests"}

# What the injected library is made of. It may include itself and what is listed here, and that may include nothing
# else of ours: no decoder, no table, no supervisor's code comes into the user's process by way of a header.
IN_PROCESS = ("collectors/library.cpp", "collectors/core/", "collectors/nvtx/", "collectors/python/",
              "collectors/cupti/", "collectors/unwind/")
FOR_IN_PROCESS = ("trace/recording/wire/", "trace/base/held_signals.h", "trace/base/names.h")

MAX_LINES = 500
# path -> why it may be longer. An entry that is no longer needed is a violation too.
LONGER_WITH_REASON = {}

SOURCES = (".h", ".hpp", ".c", ".cc", ".cpp", ".inc", ".cu")
NOT_OURS = {"build", ".git", ".venv", ".venv-hta", ".cache", "__pycache__"}
# Where a recording's facts are named.
FACTS = "trace/recording/wire/facts.h"
FACT = re.compile(r'^inline constexpr char (k\w+)\[\] =\s*"([^"]*)";', re.MULTILINE)
# A literal where a fact is written or looked up.
BARE_FACT = re.compile(r'\b(?:(?:EnvironmentValue|WriteFact)\s*\([^,"]+,|Fact\s*\(|environment\.emplace_back\()\s*(".*?")')
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|\b[Ff]or now\b|\bnot (yet )?implemented\b")
# With these a trace's names could command the terminal.
PRINT = re.compile(r"\bfmt::print\b|\bv?f?printf\s*\(|\bf?puts\s*\(|\bfwrite\s*\(|\bstd::c(out|err)\b")
PRINTING = "trace/io/"
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
RULE_CODE = re.compile(r'"(TP\d+)"')


def files_of(root, suffixes):
    """Paths relative to root, with '/', sorted."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [f for f in folders if f not in NOT_OURS and not f.startswith("trainprof-")]
        for name in names:
            if name.endswith(suffixes):
                found.append(os.path.relpath(os.path.join(folder, name), root).replace(os.sep, "/"))
    return sorted(found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def runs_up(folder, target):
    """Why `folder` may not use `target`, or None. Both are top folders."""
    if folder in OUTSIDE or folder == target:
        return None
    if APART in (folder, target):
        return f"{APART} is a user's program: it and the house do not know each other"
    if target in OUTSIDE:
        return "only tests use tests"
    if folder in FLOORS and target in FLOORS and FLOORS[target] >= FLOORS[folder]:
        return f"{folder} stands on floor {FLOORS[folder]}, {target} on floor {FLOORS[target]}"
    return None


def check_layers(root):
    ours = set(FLOORS) | OUTSIDE | {APART}
    cmake_files = files_of(root, ("CMakeLists.txt", ".cmake"))
    generated = " ".join(read(root, path) for path in cmake_files)
    for path in files_of(root, SOURCES):
        folder = path.split("/")[0]
        text = read(root, path)
        for match in INCLUDE.finditer(text):
            quote, target = match.groups()
            where = f"{path}:{line_of(text, match.start())}"
            top = target.split("/")[0]
            if top in ours and "/" in target:
                why = runs_up(folder, top)
                if why:
                    yield f"{where}: includes {target}: {why}"
                if quote == "<":
                    yield f"{where}: includes <{target}>: a header of ours stands in quotes"
            if quote == '"' and not os.path.isfile(os.path.join(root, target)):
                if not (target.endswith((".inc", ".h")) and re.search(
                        rf"\b{re.escape(target)}\b", generated)):
                    yield f'{where}: includes "{target}": no such path from the repository root'
    for path in cmake_files:
        folder = path.split("/")[0]
        if folder not in FLOORS and folder != APART:
            continue
        text = re.sub(r"#.*", "", read(root, path))
        for match in re.finditer(r"\btrainprof_(\w+)\b", text):
            target = match.group(1).split("_")[0]
            why = runs_up(folder, target) if target in FLOORS else None
            if why:
                yield f"{path}:{line_of(text, match.start())}: uses {match.group(0)}: {why}"


def own_includes(root, path):
    """(line, path) of each header of the repository that `path` includes."""
    text = read(root, path)
    for match in INCLUDE.finditer(text):
        if "/" in match.group(2) and os.path.isfile(os.path.join(root, match.group(2))):
            yield line_of(text, match.start()), match.group(2)


def check_rooms(root):
    seen = {}  # room -> room -> the first include
    for path in files_of(root, SOURCES):
        room = os.path.dirname(path)
        if room.split("/")[0] not in FLOORS:
            continue
        for line, target in own_includes(root, path):
            if os.path.dirname(target) != room:
                seen.setdefault(room, {}).setdefault(os.path.dirname(target), f"{path}:{line}")
    for circle in circles({room: set(below) for room, below in seen.items()}):
        ways = ", ".join(f"{seen[a][b]} includes {b}" for a in circle for b in circle if b in seen.get(a, {}))
        yield f"{' and '.join(circle)} include each other: {ways}"


def circles(graph):
    """The strongly connected parts of more than one node, sorted."""
    reach = {}
    for node in graph:
        found, todo = set(), list(graph[node])
        while todo:
            next_node = todo.pop()
            if next_node not in found:
                found.add(next_node)
                todo.extend(graph.get(next_node, ()))
        reach[node] = found
    parts = {tuple(sorted(b for b in reach[a] if a in reach.get(b, ()))) for a in graph}
    return sorted(part for part in parts if len(part) > 1)


def check_in_process(root):
    for path in files_of(root, SOURCES):
        if path.startswith(IN_PROCESS):
            allowed, why = IN_PROCESS + FOR_IN_PROCESS, "it runs inside the user's program"
        elif path.startswith(FOR_IN_PROCESS):
            allowed, why = FOR_IN_PROCESS, "what includes it runs inside the user's program"
        else:
            continue
        for line, target in own_includes(root, path):
            if not target.startswith(allowed):
                yield f"{path}:{line}: includes {target}: {why}, which may use {', '.join(FOR_IN_PROCESS)} alone"


def check_sizes(root):
    too_long = {}
    for path in files_of(root, SOURCES + (".py", ".sh", ".cmake", "CMakeLists.txt")):
        lines = read(root, path).count("\n")
        if lines > MAX_LINES:
            too_long[path] = lines
    for path, lines in too_long.items():
        if path not in LONGER_WITH_REASON:
            yield f"{path}: {lines} lines, at most {MAX_LINES}: split it, or give the reason here"
    for path in LONGER_WITH_REASON:
        if path not in too_long:
            yield f"{path}: is not longer than {MAX_LINES} lines: its exception is no longer needed"


def check_rules(root):
    documentation = read(root, "docs/rules.md") if os.path.isfile(
        os.path.join(root, "docs/rules.md")) else ""
    rules = [p for p in files_of(root, ".cpp") if re.fullmatch(r"analysis/rules/[^/]+\.cpp", p)]
    if not rules:
        yield "analysis/rules: no rule found"
    file_of_code = {}
    for path in rules:
        stem = os.path.basename(path)[:-len(".cpp")]
        slug = stem.replace("_", "-")
        test = f"tests/analysis/rules/{stem}_test.cpp"
        if not os.path.isfile(os.path.join(root, test)):
            yield f"{path}: has no test {test}"
        if not has_anchor(documentation, slug):
            yield f'{path}: docs/rules.md has no anchor {slug} (a heading, or <a id="{slug}">)'
        codes = set(RULE_CODE.findall(read(root, path)))
        if len(codes) != 1 or not re.fullmatch(r"TP[1-9]\d\d", next(iter(codes))):
            yield f"{path}: needs exactly one code TPnnn, has {sorted(codes) or 'none'}"
            continue
        code = codes.pop()
        if code in file_of_code:
            yield f"{path}: code {code} belongs to {file_of_code[code]} already"
        file_of_code.setdefault(code, path)
        if documentation and code not in documentation:
            yield f"{path}: docs/rules.md does not name {code}"
    stems = {os.path.basename(path)[:-len(".cpp")] for path in rules}
    for path in files_of(root, "_test.cpp"):
        match = re.fullmatch(r"tests/analysis/rules/([^/]+)_test\.cpp", path)
        if match and match.group(1) not in stems:
            yield f"{path}: tests a rule that is not there (analysis/rules/{match.group(1)}.cpp)"


def has_anchor(markdown, slug):
    if f'<a id="{slug}">' in markdown:
        return True
    # GitHub's anchor of a heading: lower case, other characters dropped, blanks to dashes.
    for heading in re.findall(r"^#+\s+(.*)$", markdown, re.MULTILINE):
        if re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") == slug:
            return True
    return False


def opening_of(root, path):
    """How a file may begin."""
    if path.endswith(".cmake") and os.path.isfile(os.path.join(root, path[:-len("cmake")] + "cpp")):
        return ""  # what the program beside it needs
    if not path.endswith(SOURCES):
        return r'(#!.*\n)?(#(?!!)|""")'
    header = re.sub(r"\.cpp$", ".h", path)
    if header != path and os.path.isfile(os.path.join(root, header)):
        return rf'//|/\*|#include "{re.escape(header)}"'  # its header says what it is for
    return r"//|/\*"


def check_leftovers(root):
    for path in files_of(root, SOURCES + (".py", ".sh", ".cmake")):
        text = read(root, path)
        if re.match(r"tests/.*_test\.cpp$", path):
            opening = ""  # its name says what it tests
        else:
            opening = opening_of(root, path)
        if not re.match(opening, text):
            yield f"{path}:1: begin with a comment that says what the file is for"
        if path == "tests/house/check_house.py" or path == "tests/house/check_house_test.py":
            continue  # they name what they look for
        for match in LEFTOVER.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: left to do: {match.group(0)!r}"
    if os.path.isfile(os.path.join(root, FACTS)):
        yield from bare_facts(root)


def bare_facts(root):
    """Names of facts that a source spells. Those of one word mean other things, too: they are looked for in calls."""
    facts = dict((text, name) for name, text in FACT.findall(read(root, FACTS)))
    telling = "|".join(re.escape(text) for text in facts if re.search(r"[. ]\S", text))
    spelled = re.compile(rf'"(?:{telling})"') if telling else None
    for path in files_of(root, SOURCES):
        if path.split("/")[0] not in FLOORS or path == FACTS:
            continue
        text = read(root, path)
        found = {match.start(1): match.group(1) for match in BARE_FACT.finditer(text)}
        if spelled:
            found.update((match.start(), match.group()) for match in spelled.finditer(text))
        for position, literal in sorted(found.items()):
            constant = facts.get(literal[1:-1], "a constant")
            yield f"{path}:{line_of(text, position)}: names the fact {literal}: {constant} of {FACTS}"


def check_prints(root):
    for path in files_of(root, (".h", ".cpp")):
        if path.split("/")[0] not in ("trace", "analysis", "viewer", "profiler") or path.startswith(PRINTING):
            continue
        text = read(root, path)
        for match in PRINT.finditer(text):
            yield f"{path}:{line_of(text, match.start())}: {match.group(0).rstrip('( ')}; print through trace/io/print.h"


FENCE = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STRING = r'"(?:\\.|[^"\\\n])*"'
MESSAGES = "docs/troubleshooting.md"


def texts_of(root):
    """All string literals of each source of the program, those that stand side by side as one: path -> texts."""
    found = {}
    for path in files_of(root, SOURCES):
        if path.split("/")[0] in FLOORS:
            joined = re.findall(rf"{STRING}(?:\s*{STRING})*", read(root, path))
            found[path] = [re.sub(r'\\"', '"', "".join(part[1:-1] for part in re.findall(STRING, text)))
                           for text in joined]
    return found


def is_printed(message, texts):
    """Whether one source holds all parts of a message, between which values stand as '...'."""
    parts = [part for part in re.split(r"\.\.\.", message) if part.strip(" .:")]
    return any(all(any(part in text for text in of_file) for part in parts) for of_file in texts.values())


def check_pages(root):
    pages = [path for path in files_of(root, ".md") if path.startswith("docs/")]
    for page in pages:
        for match in FENCE.finditer(read(root, page)):
            path, block = match.group(2), match.group(3)
            where = f"{page}:{line_of(read(root, page), match.start())}"
            if path is None:
                continue
            if not os.path.isfile(os.path.join(root, path)):
                yield f"{where}: shows {path}, which is not there"
            elif block not in read(root, path):
                yield f"{where}: is not what stands in {path}"
    if MESSAGES not in pages:
        return
    texts, page = texts_of(root), read(root, MESSAGES)
    whole = {text for of_file in texts.values() for text in of_file}
    for match in FENCE.finditer(page):
        for line in match.group(3).splitlines():
            if match.group(1) == "text" and line and not is_printed(line, texts):
                yield f"{MESSAGES}:{line_of(page, match.start())}: nothing prints: {line}"
    for row in re.finditer(r"^\| (`.*?) \|", page, re.MULTILINE):
        for quoted in re.findall(r"`([^`]+)`", row.group(1)):
            is_kind = re.fullmatch(r"[a-z_]+", quoted)
            if not (quoted in whole if is_kind else is_printed(quoted, texts)):
                yield f"{MESSAGES}:{line_of(page, row.start())}: nothing prints: {quoted}"


TABLES = "trace/tables/trace.h"
MAX_FILES_OF_TABLE = 8


def check_tables(root):
    text = read(root, TABLES)
    described = [struct for struct, body in re.findall(r"struct (\w+Table) : EventColumns \{(.*?)\n\};", text, re.DOTALL)
                 if "kColumns" in body]
    if not described:
        yield f"{TABLES}: no table names its columns"
    # An analysis names what it reads.
    product = [path for path in files_of(root, SOURCES)
               if path.split("/")[0] in FLOORS and not path.startswith("analysis/")]
    for struct in described:
        member = re.search(rf"^  {struct} (\w+);", text, re.MULTILINE)
        if not member:
            yield f"{TABLES}: {struct} is no table of the trace"
            continue
        name = member.group(1)
        names_it = re.compile(rf"\b{struct}\b|(?:\.|->){name}\b|\bk{name[0].upper()}{name[1:]}\b")
        files = [path for path in product if names_it.search(read(root, path))]
        if len(files) > MAX_FILES_OF_TABLE:
            yield f"{TABLES}: {len(files)} files name {name}, at most {MAX_FILES_OF_TABLE}: {', '.join(files)}"


TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: [^;{]*)?\{", re.MULTILINE)


def check_types(root):
    """A type that two headers define differently is two types of one name: what is linked of them mixes."""
    of_type = {}
    for path in files_of(root, (".h",)):
        if path.split("/")[0] not in FLOORS:
            continue
        text = read(root, path)
        space = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
        for name in TYPE.findall(text):
            of_type.setdefault((space.group(1) if space else "", name), set()).add(path)
    for (space, name), paths in sorted(of_type.items()):
        if len(paths) > 1:
            yield f"{min(paths)}: {space}::{name} is also in {', '.join(sorted(paths - {min(paths)}))}"


def clang_format():
    """The command of version 14: other versions lay code out differently."""
    for name in ("clang-format-14", "clang-format"):
        command = shutil.which(name)
        if not command:
            continue
        version = subprocess.run([command, "--version"], capture_output=True, text=True).stdout
        if re.search(r"version 14\.", version):
            return command
    return None


def check_format(root):
    command = clang_format()
    if not command:
        print("Skipped: needs clang-format 14 (apt-get install clang-format-14)")
        sys.exit(SKIP)
    files = files_of(root, (".h", ".c", ".cpp", ".cu"))
    if not files:
        yield "no source files found"
        return
    run = subprocess.run([command, "--dry-run", "--Werror", "--style=file"] + files, cwd=root,
                         capture_output=True, text=True)
    dirty = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error: code should be clang-formatted",
                                  run.stderr, re.MULTILINE)))
    for path in dirty:
        yield f"{path}: run {os.path.basename(command)} -i {path}"
    if run.returncode != 0 and not dirty:
        yield f"{command} failed:\n{run.stderr}"


CHECKS = {"layers": check_layers, "rooms": check_rooms, "in_process": check_in_process, "sizes": check_sizes, "rules": check_rules,
          "leftovers": check_leftovers, "prints": check_prints, "pages": check_pages,
          "tables": check_tables, "types": check_types, "format": check_format}


def main(arguments):
    if len(arguments) not in (1, 2) or arguments[0] not in CHECKS:
        print(__doc__, file=sys.stderr)
        return 2
    here = os.path.dirname(os.path.abspath(__file__))
    root = arguments[1] if len(arguments) == 2 else os.path.join(here, "..", "..")
    violations = list(CHECKS[arguments[0]](root))
    for violation in violations:
        print(violation)
    print(f"{arguments[0]}: {len(violations)} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
