// Where an instruction of Python stands, and what it calls, read from tables and sources: beside what
// Python itself says.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "collectors/python/line_table.h"
#include "collectors/stacks/call_names.h"
#include "tests/collectors/python_program.h"
#include "tests/support/sanitized.h"
#include "tests/support/scratch_folder.h"

namespace trainprof::testing {
namespace {

class PythonSource : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Installed, PythonSource, ::testing::ValuesIn(Pythons()),
                         [](const auto& python) {
                           const std::string& path = python.param;
                           return "Python3_" + path.substr(path.rfind('.') + 1);
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PythonSource);

// What Python itself says of the lines of its library's functions.
TEST_P(PythonSource, LinesAreThosePythonGives) {
  PythonProgram program(
      GetParam(), R"(import argparse, asyncio.base_events, dataclasses, typing, types, json.decoder
print('ready')
def visit(code):
    print(code.co_firstlineno, code.co_linetable.hex() or '-', len(code.co_code))
    print(' '.join(f'{s} {e} {l or 0}' for s, e, l in code.co_lines()))
    if hasattr(code, 'co_positions'):
        print(*[-1 if x is None else x for p in code.co_positions() for x in p])
    else: print()
    for c in code.co_consts:
        if isinstance(c, types.CodeType): visit(c)
for module in (argparse, asyncio.base_events, dataclasses, typing, json.decoder):
    with open(module.__file__) as f: visit(compile(f.read(), module.__file__, 'exec'))
)");
  const int minor = std::stoi(GetParam().substr(GetParam().rfind('.') + 1));
  std::istringstream lines(program.Rest());
  int64_t compared = 0;
  int64_t columns = 0;
  for (std::string head, ranges, positions; std::getline(lines, head) &&
                                            std::getline(lines, ranges) &&
                                            std::getline(lines, positions);) {
    std::istringstream words(head);
    int64_t first_line = 0, size = 0;
    std::string hex;
    words >> first_line >> hex >> size;
    std::vector<uint8_t> table;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      table.push_back(static_cast<uint8_t>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    std::istringstream each(ranges);
    int64_t begin = 0, end = 0, line = 0;
    while (each >> begin >> end >> line) {
      for (int64_t at = begin; at < end; at += 2) {
        ASSERT_EQ(LineOf(minor, table, first_line, at), line) << head << " at " << at;
        ++compared;
      }
    }
    std::istringstream all(positions);
    SourceSpan span;
    for (int64_t at = 0; all >> span.line >> span.end_line >> span.column >> span.end_column;
         at += 2) {
      const bool has_line = span.line > 0;
      ASSERT_EQ(SpanOf(minor, table, first_line, at), has_line ? span : SourceSpan{}) << head << at;
      columns += span.column >= 0;
    }
    ASSERT_EQ(LineOf(minor, table, first_line, -2), first_line);
    ASSERT_EQ(LineOf(minor, table, first_line, size + 1000), 0);
  }
  EXPECT_GE(compared, 20'000);
  EXPECT_GE(columns, minor == 10 ? 0 : 20'000);
}

TEST(LineTable, AnyBytesAreSurvived) {
  uint32_t seed = 1;
  for (int round = 0; round < Rounds(20'000); ++round) {
    std::vector<uint8_t> table(static_cast<size_t>(round % 40));
    for (uint8_t& byte : table)
      byte = static_cast<uint8_t>((seed = seed * 1664525 + 1013904223) >> 24);
    for (const int minor : {10, 11, 13}) {
      const int64_t line = LineOf(minor, table, 1, round % 64);
      ASSERT_GE(line, 0);
      ASSERT_LE(line, INT32_MAX);
    }
  }
}

// Each expression of Python's library, and what its syntax tree says is called.
TEST_P(PythonSource, CalleesAreThosePythonParses) {
  PythonProgram program(
      GetParam(),
      R"(import argparse, ast, asyncio.base_events, dataclasses, typing, json.decoder, subprocess
print('ready')
def callee(func):
    names = []
    while isinstance(func, ast.Attribute):
        names.append(func.attr)
        func = func.value
    if isinstance(func, ast.Name): names.append(func.id)
    elif names: names.append('')
    return '.'.join(reversed(names))
for module in (argparse, asyncio.base_events, dataclasses, typing, json.decoder, subprocess):
    with open(module.__file__, 'rb') as f: source = f.read()
    begins = [0]
    for line in source.splitlines(keepends=True): begins.append(begins[-1] + len(line))
    for node in ast.walk(ast.parse(source)):
        # The text in an f-string may look like anything.
        if not isinstance(node, ast.expr) or isinstance(node, ast.Constant): continue
        segment = source[begins[node.lineno - 1] + node.col_offset:
                         begins[node.end_lineno - 1] + node.end_col_offset]
        print(segment.hex(), callee(node.func) if isinstance(node, ast.Call) else '')
)");
  std::istringstream lines(program.Rest());
  int calls = 0;
  int others = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t blank = line.find(' ');
    std::string segment;
    for (size_t i = 0; i + 1 < blank; i += 2) {
      segment += static_cast<char>(std::stoi(line.substr(i, 2), nullptr, 16));
    }
    const std::string callee = line.substr(blank + 1);
    EXPECT_EQ(CalleeOf(segment), callee) << segment;
    ++(callee.empty() ? others : calls);
  }
  EXPECT_GE(calls, 2'000);
  EXPECT_GE(others, 10'000);
}

TEST(CallNames, AnyBytesAreSurvived) {
  const std::string_view bytes = "ab.()[]{}'\"\\\n# f,=1";
  uint32_t seed = 1;
  const auto random = [&](size_t below) {
    return ((seed = seed * 1664525 + 1013904223) >> 8) % below;
  };
  int named = 0;
  for (int round = 0; round < Rounds(200'000); ++round) {
    std::string text;
    for (size_t i = random(16); i > 0; --i) text += bytes[random(bytes.size())];
    const std::string_view callee = CalleeOf(text);
    named += !callee.empty();
    ASSERT_TRUE(callee.empty() || text.find(callee) != std::string::npos) << text;
    ASSERT_TRUE(callee.find_first_of("()[]{}'\"\\\n# ,=") == std::string_view::npos) << text;
  }
  EXPECT_GT(named, 0);
}

TEST(CallNames, AreOnlyThoseOfFilesThatCanBeRead) {
  const ScratchFolder folder;
  const std::string script = folder / "a.py";
  std::ofstream(script) << "x = read(1)\nopen('b')\n";
  CallNames names("/proc/self");
  const SourceSpan read{1, 1, 4, 11};
  EXPECT_EQ(names.At(script, read), "read");
  EXPECT_EQ(names.At(script, {2, 2, 0, 9}), "open");
  for (const SourceSpan& nowhere :
       {SourceSpan{}, SourceSpan{1, 1, -1, 5}, SourceSpan{1, 1, 4, 4000}, SourceSpan{3, 3, 0, 1},
        SourceSpan{2, 1, 0, 9}, SourceSpan{1, 1'000'000'000, 0, 1}, SourceSpan{1, 1, 11, 4}}) {
    EXPECT_EQ(names.At(script, nowhere), "");
  }
  EXPECT_EQ(names.At(folder.path().string(), read), "");
  EXPECT_EQ(names.At("/dev/zero", read), "");
  EXPECT_EQ(names.At("<stdin>", read), "");
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(names.At(pipe, read), "");  // and does not wait for who writes into it
}

}  // namespace
}  // namespace trainprof::testing
