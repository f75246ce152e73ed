// trainprof explain: what a rule or a budget means, in the words of docs/rules.md.
#include <fmt/format.h>

#include <memory>
#include <string_view>

#include "analysis/rule.h"
#include "profiler/cli/commands.h"
#include "profiler/gate/budgets.h"
#include "profiler/gate/gate.h"
#include "profiler/report/text.h"
#include "trace/base/nearest.h"
#include "trace/io/print.h"

namespace trainprof::cli {
namespace {

constexpr char kExplainExamples[] = R"(Examples:
  trainprof explain                                all rules and budgets
  trainprof explain TP301
  trainprof explain input-bound

Exit codes: 0 explained, 2 there is no such rule.)";

// docs/rules.md, as it was when this program was built.
constexpr std::string_view kRulesText =
#include "rules_text.inc"
    ;

// What stands under "## slug", without the heading; "" where there is none.
std::string_view SectionOf(std::string_view slug) {
  const std::string heading = fmt::format("\n## {}\n", slug);
  const size_t begin = kRulesText.find(heading);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = kRulesText.substr(begin + heading.size());
  return rest.substr(0, rest.find("\n## "));
}

std::string_view FirstLine(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return line;
}

// Paragraphs as wide as a terminal, code as it stands.
std::string ForTerminal(std::string_view markdown) {
  std::string text;
  std::string paragraph;
  bool is_code = false;
  const auto end_paragraph = [&] {
    if (!paragraph.empty()) text += Wrap(paragraph, 0, kTextWidth) + "\n\n";
    paragraph.clear();
  };
  while (!markdown.empty()) {
    const std::string_view line = FirstLine(markdown);
    if (line.starts_with("```")) {
      end_paragraph();
      if (is_code) text += "\n";
      is_code = !is_code;
    } else if (is_code) {
      text += fmt::format("    {}\n", line);
    } else if (line.empty()) {
      end_paragraph();
    } else {
      paragraph += fmt::format("{}{}", paragraph.empty() ? "" : " ", line);
    }
  }
  end_paragraph();
  return text;
}

int ListAll() {
  std::string text = "Rules:\n";
  std::vector<RegisteredRule> rules(AllRules().begin(), AllRules().end());
  std::sort(rules.begin(), rules.end(), [](const RegisteredRule& a, const RegisteredRule& b) {
    return a.rule->code < b.rule->code;
  });
  for (const RegisteredRule& entry : rules) {
    text += fmt::format("  {}  {:<22} {}\n", entry.rule->code, entry.slug, entry.rule->title);
  }
  text += "\nBudgets, in .trainprof.toml:\n";
  for (const std::string& name : BudgetNames()) {
    const BudgetKind& kind = *FindBudgetKind(name);
    text += fmt::format("  {}  {:<22} {}, {}\n", kind.code, name, kind.title,
                        kind.has_max ? "at most" : "at least");
  }
  text += fmt::format("  {}  {:<22} {}\n", kRegressionCode, "step_time_regression",
                      "step time against the baseline, at most so much longer");
  trainprof::PrintText(stdout, text);
  return kExitOk;
}

int Explain(const std::string& name) {
  if (name.empty()) return ListAll();
  std::vector<std::string> known;
  for (const RegisteredRule& entry : AllRules()) {
    known.emplace_back(entry.slug);
    known.emplace_back(entry.rule->code);
    if (name != entry.slug && name != entry.rule->code) continue;
    trainprof::PrintText(
        stdout, fmt::format("{} {}: {}\n\n{}Ignored in one line of the source by a comment there, "
                            "'# trainprof: ignore[{}]', or by [[suppress]] in {}.\n",
                            entry.rule->code, entry.slug, entry.rule->title,
                            ForTerminal(SectionOf(entry.slug)), entry.rule->code, kPolicyFile));
    return kExitOk;
  }
  for (const std::string& budget : BudgetNames()) {
    const BudgetKind& kind = *FindBudgetKind(budget);
    known.push_back(budget);
    if (name != budget && name != kind.code) continue;
    trainprof::PrintText(
        stdout, fmt::format("{} {}: {}.\n\n    [budgets.{}]\n    {} = ...\n", kind.code, budget,
                            kind.title, budget, kind.has_max ? "max" : "min"));
    return kExitOk;
  }
  if (name == kRegressionCode) {
    trainprof::PrintText(
        stdout,
        fmt::format("{}: the step takes longer than in the baseline's runs, with nine in ten "
                    "certainty, and by more than max-regression of [budgets.{}] "
                    "({:.0f} % where it says nothing).\n",
                    name, kStepTimeBudget, 100 * kMostRegression));
    return kExitOk;
  }
  const std::string nearest = Nearest(name, known);
  return Fail("explain",
              fmt::format("there is no rule '{}'{}; all: trainprof explain", name,
                          nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest)),
              kExitUsage);
}

Action SetUpExplain(CLI::App& parser) {
  auto name = std::make_shared<std::string>();
  parser.add_option("RULE", *name, "A code (TP301), or a name (host-sync)");
  return [name](const ProgramArguments&) { return Explain(*name); };
}

}  // namespace

Command ExplainCommand() {
  return {"explain", "say what a rule means, with its fix", kExplainExamples, SetUpExplain};
}

}  // namespace trainprof::cli
