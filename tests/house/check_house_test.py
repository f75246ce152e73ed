#!/usr/bin/env python3
"""The house's checks do fail: each is shown a violation that was planted in a small tree."""
import contextlib
import io
import os
import sys
import tempfile
import textwrap
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_house  # noqa: E402
import check_skips  # noqa: E402


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def put(self, path, text):
        full = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text))
        return full

    def violations(self, check):
        return list(check_house.CHECKS[check](self.folder.name))


class Layers(Tree):
    def setUp(self):
        super().setUp()
        for path in ("trace/a.h", "trace/formats/f.h", "collectors/nvtx/n.h", "analysis/b.h",
                     "profiler/cli/c.h", "viewer/v.h", "instrumented_trainer/t.h",
                     "tests/trace/help.h"):
            self.put(path, "// A header.\n")

    def include(self, path, target):
        self.put(path, f'// A file.\n#include "{target}"\n')
        return self.violations("layers")

    def test_goes_down_or_stays(self):
        self.put("trace/formats/x.cpp", '#include "trace/a.h"\n')
        self.put("collectors/nvtx/x.cpp", '#include "trace/a.h"\n#include "collectors/nvtx/n.h"\n')
        self.put("analysis/x.cpp", '#include "trace/formats/f.h"\n#include <vector>\n')
        self.put("profiler/x.cpp", '#include "analysis/b.h"\n#include "trace/a.h"\n')
        self.put("instrumented_trainer/x.cpp", '#include "instrumented_trainer/t.h"\n')
        self.put("tests/x_test.cpp", '#include "profiler/cli/c.h"\n')
        self.assertEqual(self.violations("layers"), [])

    def test_fails_on_every_way_up(self):
        for path, target in (("trace/x.h", "collectors/nvtx/n.h"), ("trace/x.h", "analysis/b.h"),
                             ("trace/formats/x.cpp", "profiler/cli/c.h"),
                             ("collectors/nvtx/x.cpp", "analysis/b.h"),
                             ("analysis/x.cpp", "profiler/cli/c.h"),
                             ("viewer/x.cpp", "profiler/cli/c.h"),
                             ("profiler/x.cpp", "viewer/v.h"),
                             ("analysis/x.cpp", "tests/trace/help.h")):
            with self.subTest(path=path, target=target):
                self.assertEqual(len(self.include(path, target)), 1)
                os.remove(os.path.join(self.folder.name, path))

    def test_keeps_the_trainer_apart(self):
        self.assertEqual(len(self.include("instrumented_trainer/x.cpp", "trace/a.h")), 1)
        self.assertEqual(len(self.include("profiler/x.cpp", "instrumented_trainer/t.h")), 2)

    def test_names_file_and_line(self):
        [violation] = self.include("trace/x.h", "analysis/b.h")
        self.assertTrue(violation.startswith("trace/x.h:2: includes analysis/b.h"), violation)

    def test_sees_angle_brackets_and_blanks(self):
        self.put("trace/x.h", "  #  include <analysis/b.h>\n")
        self.assertEqual(len(self.violations("layers")), 2)

    def test_refuses_paths_that_do_not_start_at_the_root(self):
        self.assertEqual(len(self.include("trace/formats/x.cpp", "f.h")), 1)
        self.assertEqual(len(self.include("trace/formats/x.cpp", "../../analysis/b.h")), 1)

    def test_knows_generated_lists(self):
        self.put("trace/CMakeLists.txt", 'trainprof_registry(importers.inc "formats/i_*.cpp" "i_")\n')
        self.assertEqual(self.include("trace/x.cpp", "importers.inc"), [])
        self.assertEqual(len(self.include("trace/x.cpp", "exporters.inc")), 1)

    def test_sees_a_link_that_runs_up(self):
        self.put("trace/CMakeLists.txt", "target_link_libraries(trainprof_trace PUBLIC trainprof_flags)\n")
        self.put("analysis/CMakeLists.txt", "target_link_libraries(trainprof_analysis trainprof_trace)\n")
        self.assertEqual(self.violations("layers"), [])
        self.put("collectors/CMakeLists.txt", "target_link_libraries(x\n  trainprof_analysis)\n")
        [violation] = self.violations("layers")
        self.assertTrue(violation.startswith("collectors/CMakeLists.txt:2:"), violation)


class Rooms(Tree):
    def test_may_stand_on_each_other(self):
        self.put("trace/base/a.h", "// A.\n")
        self.put("trace/tables/b.h", '// B.\n#include "trace/base/a.h"\n')
        self.put("trace/read/c.cpp", '// C.\n#include "trace/base/a.h"\n#include "trace/tables/b.h"\n')
        self.assertEqual(self.violations("rooms"), [])

    def test_fails_on_a_circle_of_three(self):
        self.put("trace/base/a.h", '// A.\n#include "trace/read/c.h"\n')
        self.put("trace/tables/b.h", '// B.\n#include "trace/base/a.h"\n')
        self.put("trace/read/c.h", '// C.\n#include "trace/tables/b.h"\n')
        self.put("trace/alone/d.h", '// D.\n#include "trace/base/a.h"\n')
        [violation] = self.violations("rooms")
        self.assertIn("trace/base and trace/read and trace/tables include each other", violation)
        self.assertIn("trace/base/a.h:2 includes trace/read", violation)


class InProcess(Tree):
    def setUp(self):
        super().setUp()
        self.put("trace/recording/wire/rows.h", "// Rows.\n")
        self.put("trace/recording/read/reader.h", "// A decoder.\n")
        self.put("collectors/core/system.h", "// Ours.\n")
        self.put("collectors/salvage/salvage.h", "// The supervisor's.\n")

    def test_uses_itself_and_the_wire(self):
        self.put("collectors/cupti/x.cpp", '''\
            // X.
            #include "collectors/core/system.h"
            #include "trace/recording/wire/rows.h"
            ''')
        self.put("collectors/salvage/y.cpp", '// Y.\n#include "trace/recording/read/reader.h"\n')
        self.assertEqual(self.violations("in_process"), [])

    def test_fails_on_a_decoder_and_on_the_supervisors_code(self):
        for target in ("trace/recording/read/reader.h", "collectors/salvage/salvage.h"):
            self.put("collectors/nvtx/x.cpp", f'// X.\n#include "{target}"\n')
            [violation] = self.violations("in_process")
            self.assertTrue(violation.startswith(f"collectors/nvtx/x.cpp:2: includes {target}"), violation)

    def test_fails_where_the_wire_brings_more(self):
        self.put("trace/recording/wire/rows.h", '// Rows.\n#include "trace/recording/read/reader.h"\n')
        self.assertEqual(len(self.violations("in_process")), 1)


class Sizes(Tree):
    def test_fails_past_the_limit_alone(self):
        self.put("trace/x.cpp", "// A line.\n" * 500)
        self.assertEqual(self.violations("sizes"), [])
        self.put("trace/x.cpp", "// A line.\n" * 501)
        self.assertEqual(len(self.violations("sizes")), 1)

    def test_an_exception_must_be_needed(self):
        check_house.LONGER_WITH_REASON["trace/x.cpp"] = "a table"
        self.addCleanup(check_house.LONGER_WITH_REASON.clear)
        self.put("trace/x.cpp", "// A line.\n" * 501)
        self.assertEqual(self.violations("sizes"), [])
        self.put("trace/x.cpp", "// A line.\n")
        self.assertEqual(len(self.violations("sizes")), 1)


class Rules(Tree):
    def rule(self, stem, code):
        self.put(f"analysis/rules/{stem}.cpp", f'// A rule.\nconst Rule r{{"{code}", "title"}};\n')

    def setUp(self):
        super().setUp()
        self.rule("input_bound", "TP101")
        self.put("tests/analysis/rules/input_bound_test.cpp", "// Test.\n")
        self.put("docs/rules.md", '# Rules\n<a id="input-bound"></a>\nTP101\n')

    def test_a_complete_rule_passes(self):
        self.assertEqual(self.violations("rules"), [])

    def test_a_heading_is_an_anchor_too(self):
        self.put("docs/rules.md", "# Rules\n## input-bound\nTP101\n")
        self.assertEqual(self.violations("rules"), [])

    def test_needs_its_test(self):
        os.remove(os.path.join(self.folder.name, "tests/analysis/rules/input_bound_test.cpp"))
        self.assertEqual(len(self.violations("rules")), 1)

    def test_needs_its_anchor_and_its_code_in_the_docs(self):
        self.put("docs/rules.md", "# Rules\ninput-bound\n")
        self.assertEqual(len(self.violations("rules")), 2)

    def test_needs_a_code_of_its_own(self):
        self.rule("host_sync", "TP101")
        self.put("tests/analysis/rules/host_sync_test.cpp", "// Test.\n")
        self.put("docs/rules.md", "## input-bound\n## host-sync\nTP101\n")
        [violation] = self.violations("rules")
        self.assertIn("belongs to", violation)

    def test_needs_a_well_formed_code(self):
        self.rule("input_bound", "TP12")
        self.assertEqual(len(self.violations("rules")), 1)

    def test_a_test_needs_its_rule(self):
        self.put("tests/analysis/rules/gone_test.cpp", "// Test.\n")
        self.assertEqual(len(self.violations("rules")), 1)


class Leftovers(Tree):
    def test_fails_on_a_file_without_a_purpose(self):
        self.put("trace/x.h", "// What it is for.\n#pragma once\n")
        self.put("scripts/x.sh", "#!/bin/bash\n# What it is for.\n")
        self.put("scripts/x.py", '#!/usr/bin/env python3\n"""What it is for."""\n')
        self.assertEqual(self.violations("leftovers"), [])
        self.put("trace/x.h", "#pragma once\n// Too late.\n")
        self.put("scripts/x.sh", "#!/bin/bash\nset -e\n")
        self.assertEqual(len(self.violations("leftovers")), 2)

    def test_a_header_speaks_for_its_cpp_file(self):
        self.put("trace/x.h", "// What it is for.\n")
        self.put("trace/x.cpp", '#include "trace/x.h"\n')
        self.assertEqual(self.violations("leftovers"), [])
        os.remove(os.path.join(self.folder.name, "trace/x.h"))
        self.assertEqual(len(self.violations("leftovers")), 1)

    def test_fails_on_what_is_left_to_do(self):
        self.put("trace/x.h", "// What it is for.\n// " + "TO" + "DO: more\n")
        self.assertEqual(len(self.violations("leftovers")), 1)

    def test_fails_on_a_fact_that_is_spelled(self):
        self.put("trace/recording/wire/facts.h", """\
            // Names of facts.
            inline constexpr char kState[] = "cupti.state";  // words
            inline constexpr char kWiped[] =
                "wiped environment";
            inline constexpr char kHost[] = "host";
            inline constexpr char kGpuPrefix[] = "GPU ";
            """)
        self.put("tests/a_test.cpp", 'EXPECT_EQ(Value("cupti.state"), "");\n')
        self.put("viewer/a.cpp", '// Draws.\nLabel("GPU "); Column("host"); WriteFact(session, fact::kHost, "a");\n')
        self.assertEqual(self.violations("leftovers"), [])
        self.put("analysis/a.cpp", '// Reads.\nValueOf(rank, "cupti.state");\nValueOf(rank, "wiped environment");\n')
        self.put("analysis/b.cpp", '// Reads.\nEnvironmentValue(rank.environment, "host");\n')
        self.put("collectors/a.cpp", '// Writes.\nout.Fact("host", name);\nWriteFact(session, "new", "a");\n')
        self.put("trace/a.cpp", '// Reads.\ntrace.environment.emplace_back("host", name);\n')
        self.assertEqual([text.split(" of ")[0] for text in self.violations("leftovers")],
                         ['analysis/a.cpp:2: names the fact "cupti.state": kState',
                          'analysis/a.cpp:3: names the fact "wiped environment": kWiped',
                          'analysis/b.cpp:2: names the fact "host": kHost',
                          'collectors/a.cpp:2: names the fact "host": kHost',
                          'collectors/a.cpp:3: names the fact "new": a constant',
                          'trace/a.cpp:2: names the fact "host": kHost'])


class Prints(Tree):
    def test_fails_on_a_print_of_its_own(self):
        self.put("trace/io/print.cpp", "// The one place.\nstd::fwrite(text, 1, 2, stdout);\n")
        self.put("profiler/a.cpp", '// Formats.\nstd::snprintf(text, 3, "a");\nPrint(stdout, "a");\n')
        self.assertEqual(self.violations("prints"), [])
        self.put("profiler/b.cpp", '// Prints.\nfmt::print(stderr, "{}", name);\n')
        self.put("viewer/c.cpp", '// Prints.\nstd::cerr << name;\nstd::fprintf(stderr, "a");\n')
        self.assertEqual([text.split(": ")[0] for text in self.violations("prints")],
                         ["profiler/b.cpp:2", "viewer/c.cpp:2", "viewer/c.cpp:3"])


class Pages(Tree):
    def setUp(self):
        super().setUp()
        self.put("trace/a.cpp", """\
            // A file.
            const char* kSays = "no such file: {}; "
                                "give \\"another\\" one";
            quality.Count("lost_rows", 1);
            """)

    def page(self, text, name="docs/troubleshooting.md"):
        self.put(name, text)
        return self.violations("pages")

    def test_code_of_a_file_stands_in_it(self):
        self.assertEqual(self.page("```cpp trace/a.cpp\n// A file.\n```\n", "docs/x.md"), [])
        self.assertEqual(len(self.page("```cpp trace/a.cpp\n// Another.\n```\n", "docs/x.md")), 1)
        self.assertEqual(len(self.page("```cpp trace/b.cpp\n// A file.\n```\n", "docs/x.md")), 1)

    def test_a_message_is_one_that_is_printed(self):
        self.assertEqual(self.page('```text\nno such file: ...; give "another" one\n```\n'), [])
        self.assertEqual(len(self.page("```text\nno such folder: ...; give\n```\n")), 1)
        self.assertEqual(len(self.page("```text\nno such file: ...; give that one\n```\n")), 1)

    def test_a_kind_of_quality_is_one_that_is_counted(self):
        self.assertEqual(self.page("| `lost_rows` | gone |\n"), [])
        self.assertEqual(len(self.page("| `lost_rows`, `lost_names` | gone |\n")), 1)


class Tables(Tree):
    def test_few_files_name_a_described_table(self):
        self.put("trace/tables/trace.h", """\
            // Tables.
            struct SyncTable : EventColumns {
              static constexpr std::string_view kColumns[] = {"category"};
            };
            struct Trace {
              SyncTable syncs;
            };
            """)
        for number in range(check_house.MAX_FILES_OF_TABLE - 1):
            self.put(f"viewer/{number}.cpp", "// A file.\nuse(trace.syncs, Table::kSyncs);\n")
        self.put("viewer/other.cpp", "// A file.\nint syncs = 0;\n")
        self.assertEqual(self.violations("tables"), [])
        self.put("viewer/more.cpp", "// A file.\nuse(trace->syncs);\n")
        self.assertEqual(len(self.violations("tables")), 1)


class Types(Tree):
    def test_a_name_of_one_namespace_stands_once(self):
        self.put("trace/a.h", "// A.\nnamespace t {\nstruct Wait {\n  int a;\n};\n}  // namespace t\n")
        self.put("viewer/b.h", "// B.\nnamespace u {\nstruct Wait {\n};\n}  // namespace u\n")
        self.put("viewer/c.h", "// C.\nnamespace t {\nstruct Wait;\n}  // namespace t\n")
        self.assertEqual(self.violations("types"), [])
        self.put("analysis/d.h", "// D.\nnamespace t {\nclass Wait : Base {\n};\n}  // namespace t\n")
        [violation] = self.violations("types")
        self.assertTrue(violation.startswith("analysis/d.h: t::Wait is also in trace/a.h"), violation)


class Format(Tree):
    @unittest.skipUnless(check_house.clang_format(), "needs clang-format 14")
    def test_fails_on_a_file_that_is_laid_out_otherwise(self):
        self.put(".clang-format", "BasedOnStyle: Google\n")
        self.put("trace/x.cpp", "int x = 1;\n")
        self.assertEqual(self.violations("format"), [])
        self.put("trace/x.cpp", "int   x=1 ;\n")
        [violation] = self.violations("format")
        self.assertTrue(violation.startswith("trace/x.cpp:"), violation)


class Skips(Tree):
    def unexpected(self, cases, corpus="/nowhere"):
        root = ElementTree.fromstring(f"<testsuite>{cases}</testsuite>")
        return [name for name, _ in check_skips.unexpected_skips(root.iter("testcase"), corpus)]

    def case(self, reason, status="notrun"):
        output = f"[ RUN      ] A.B\nfile.cpp:12: Skipped\n{reason}\n\n[  SKIPPED ] A.B (0 ms)\n"
        return (f'<testcase name="A.B" status="{status}"><skipped message="x"/>'
                f"<system-out>{output}</system-out></testcase>")

    def test_a_test_that_ran_is_no_skip(self):
        ran = '<testcase name="A.B" status="run"><system-out>root corpus</system-out></testcase>'
        self.assertEqual(self.unexpected(ran), [])

    def test_the_reason_must_hold_here(self):
        self.assertEqual(self.unexpected(self.case("the corpus is absent")), [])
        self.assertEqual(self.unexpected(self.case("the corpus is absent"), self.folder.name), ["A.B"])

    def test_needs_root_is_a_reason_without_its_powers_alone(self):
        unexpected = ["A.B"] if check_skips.is_administrator() else []
        self.assertEqual(self.unexpected(self.case("mounting needs root")), unexpected)

    def test_pypi_is_a_reason_where_it_is_not_reached(self):
        for reached in (False, True):
            with unittest.mock.patch("check_skips.reaches_pypi", return_value=reached):
                unexpected = self.unexpected(self.case("PyPI cannot be reached: no route"))
            self.assertEqual(unexpected, ["A.B"] if reached else [])

    def test_a_skip_without_a_known_reason_is_unexpected(self):
        self.assertEqual(self.unexpected(self.case("felt like it")), ["A.B"])
        self.assertEqual(self.unexpected(self.case("")), ["A.B"])

    def test_a_disabled_test_is_unexpected(self):
        self.assertEqual(self.unexpected('<testcase name="A.B" status="disabled"/>'), ["A.B"])

    def test_words_elsewhere_in_the_output_are_no_reason(self):
        case = self.case("felt like it").replace("[ RUN", "corpus absent\n[ RUN")
        self.assertEqual(self.unexpected(case), ["A.B"])

    def test_a_run_of_no_tests_fails(self):
        empty = self.put("ctest.xml", "<testsuite></testsuite>")
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(check_skips.main([empty, "/nowhere"]), 1)


if __name__ == "__main__":
    unittest.main()
