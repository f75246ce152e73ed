// .trainprof.toml: each table by a list of its keys, so that what is unknown can be told.
#include "profiler/gate/policy.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "analysis/rule.h"
#include "profiler/gate/budgets.h"
#include "profiler/gate/small_file.h"
#include "trace/base/nearest.h"

namespace trainprof {
namespace {

constexpr int64_t kSchema = 1;
constexpr int64_t kMostWarmupSteps = 1'000'000;
constexpr size_t kMostBytes = size_t{1} << 20;  // of the file: no policy is as long

// What is wrong, with its place.
struct Wrong {
  std::string text;
};

class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  Policy Read(std::string_view text, const PolicyChanges& changes) {
    toml::table root = Parsed(text);
    Apply(changes, root);
    Policy policy;
    policy.path = path_;
    Visit(root, "the file",
          {{"schema", [&](const toml::node& node) { CheckSchema(node); }},
           {"check", [&](const toml::node& node) { ReadCheck(TableOf(node, "check"), policy); }},
           {"rules", [&](const toml::node& node) { ReadRules(TableOf(node, "rules"), policy); }},
           {"budgets",
            [&](const toml::node& node) { ReadBudgets(TableOf(node, "budgets"), policy); }},
           {"suppress", [&](const toml::node& node) { ReadSuppressions(node, policy); }}});
    return policy;
  }

 private:
  using Take = std::function<void(const toml::node&)>;
  using Keys = std::map<std::string_view, Take>;

  toml::table Parsed(std::string_view text) const {
    try {
      return toml::parse(text, path_);
    } catch (const toml::parse_error& error) {
      throw Wrong{fmt::format("{}:{}: {}", path_, error.source().begin.line, error.description())};
    }
  }

  // Puts what flags say where the file would say it, so that both are read by the same rules.
  void Apply(const PolicyChanges& changes, toml::table& root) {
    if (!changes.fail_on.empty()) {
      const std::string flag = "--fail-on " + changes.fail_on;
      if (toml::table* check = TableFor(root, "check", flag)) {
        Put(*check, "fail-on", changes.fail_on, flag);
      }
    }
    for (const std::string& text : changes.budgets) {
      const std::string flag = "--budget " + text;
      const size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
        throw Wrong{
            flag +
            ": it has to be NAME=LIMIT or NAME.KEY=VALUE: step_time_ms=210, step_time_ms.stat=p95"};
      }
      std::string name = text.substr(0, equals);
      const size_t dot = name.find('.');
      std::string key = dot == std::string::npos ? "" : name.substr(dot + 1);
      name.resize(std::min(dot, name.size()));
      const BudgetKind* const kind = FindBudgetKind(name);
      if (dot == std::string::npos) key = kind == nullptr || kind->has_max ? "max" : "min";
      toml::table* const budgets = TableFor(root, "budgets", flag);
      toml::table* const budget = budgets == nullptr ? nullptr : TableFor(*budgets, name, flag);
      if (budget != nullptr) Put(*budget, key, text.substr(equals + 1), flag);
    }
  }

  // nullptr: the file has something else there, which is an error of its own.
  toml::table* TableFor(toml::table& parent, const std::string& name, const std::string& flag) {
    if (toml::node* const known = parent.get(name)) return known->as_table();
    toml::node& made = parent.insert_or_assign(name, toml::table{}).first->second;
    origins_[&made] = flag;
    return made.as_table();
  }

  void Put(toml::table& table, const std::string& key, const std::string& value,
           const std::string& flag) {
    double number = 0;
    const char* const last = value.data() + value.size();
    const auto [end, error] = std::from_chars(value.data(), last, number);
    const bool is_number = error == std::errc() && end == last;
    toml::node& put = is_number ? table.insert_or_assign(key, number).first->second
                                : table.insert_or_assign(key, value).first->second;
    origins_[&put] = flag;
  }

  std::string At(const toml::node& node) const { return At(node, node.source()); }
  // Where the key stands that has that value.
  std::string At(const toml::node& node, const toml::source_region& source) const {
    const auto origin = origins_.find(&node);
    if (origin != origins_.end()) return origin->second;
    return fmt::format("{}:{}", path_, source.begin.line);
  }
  [[noreturn]] void Fail(const toml::node& node, const std::string& what) const {
    throw Wrong{fmt::format("{}: {}", At(node), what)};
  }

  // Calls for each key of the table what takes it.
  void Visit(const toml::table& table, std::string_view of, const Keys& keys) const {
    for (const auto& [key, node] : table) {
      const auto take = keys.find(key.str());
      if (take != keys.end()) {
        take->second(node);
        continue;
      }
      std::vector<std::string> known;
      std::string all;
      for (const auto& [name, ignored] : keys) {
        known.emplace_back(name);
        all += fmt::format("{}{}", all.empty() ? "" : ", ", name);
      }
      const std::string nearest = Nearest(key.str(), known);
      throw Wrong{fmt::format(
          "{}: '{}' is no key of {}{}; there are: {}", At(node, key.source()), key.str(), of,
          nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest), all)};
    }
  }

  const toml::table& TableOf(const toml::node& node, std::string_view name) const {
    if (const toml::table* table = node.as_table()) return *table;
    Fail(node, fmt::format("{} has to be a table: [{}]", name, name));
  }
  std::string StringOf(const toml::node& node, std::string_view key) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    Fail(node, fmt::format("{} has to be a text in quotes", key));
  }
  double NumberOf(const toml::node& node, std::string_view key) const {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value || !std::isfinite(*value) || *value < 0) {
      Fail(node, fmt::format("{} has to be a number of at least 0", key));
    }
    return *value;
  }
  // "3%" or 0.03.
  double ShareOf(const toml::node& node, std::string_view key) const {
    std::optional<double> share;
    if (const auto text = node.value_exact<std::string>()) {
      share = PercentOf(*text);
    } else if (node.is_number()) {
      share = node.value<double>();
    }
    if (!share || !(*share >= 0) || *share > 1) {
      Fail(node, fmt::format("{} has to be a share: 0.03 or \"3%\"", key));
    }
    return *share;
  }
  static std::optional<double> PercentOf(std::string_view text) {
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.empty() || text.back() != '%') return std::nullopt;
    text.remove_suffix(1);
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    double percent = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), percent);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return percent / 100;
  }

  template <class Value>
  Value OneOf(const toml::node& node, std::string_view key,
              const std::vector<std::pair<std::string_view, Value>>& words) const {
    const std::string text = StringOf(node, key);
    std::string all;
    for (const auto& [word, value] : words) {
      if (text == word) return value;
      all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", word);
    }
    Fail(node, fmt::format("{} = \"{}\": it has to be one of {}", key, text, all));
  }

  void CheckSchema(const toml::node& node) const {
    if (const auto schema = node.value_exact<int64_t>(); schema && *schema == kSchema) return;
    Fail(node, fmt::format("this trainprof knows schema = {} alone", kSchema));
  }

  void ReadCheck(const toml::table& table, Policy& policy) const {
    Visit(table, "[check]",
          {{"fail-on",
            [&](const toml::node& node) {
              policy.fail_on = OneOf<FailOn>(node, "fail-on",
                                             {{"error", FailOn::kError},
                                              {"warning", FailOn::kWarning},
                                              {"note", FailOn::kNote},
                                              {"never", FailOn::kNever}});
            }},
           {"warmup-steps", [&](const toml::node& node) {
              const auto steps = node.value_exact<int64_t>();
              if (!steps || *steps < 0 || *steps > kMostWarmupSteps) {
                Fail(node, "warmup-steps has to be a number of steps");
              }
              policy.warmup_steps = static_cast<int>(*steps);
            }}});
  }

  // The slug of a rule that is named by its code or its slug.
  std::string RuleOf(const toml::source_region& at, std::string_view name) const {
    std::vector<std::string> known;
    for (const RegisteredRule& entry : AllRules()) {
      if (name == entry.slug || name == entry.rule->code) return std::string(entry.slug);
      known.emplace_back(entry.slug);
      known.emplace_back(entry.rule->code);
    }
    const std::string nearest = Nearest(name, known);
    throw Wrong{fmt::format("{}:{}: there is no rule '{}'{}; all rules: trainprof explain", path_,
                            at.begin.line, name,
                            nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest))};
  }

  void ReadRules(const toml::table& table, Policy& policy) const {
    for (const auto& [key, node] : table) {
      RulePolicy rule;
      rule.rule = RuleOf(key.source(), key.str());
      const std::string name = fmt::format("[rules.{}]", key.str());
      if (policy.Of(rule.rule) != nullptr) {
        Fail(node, fmt::format("{}: {} has a table already", name, rule.rule));
      }
      Visit(TableOf(node, name), name,
            {{"severity",
              [&](const toml::node& value) {
                rule.severity = OneOf<std::optional<Severity>>(value, "severity",
                                                               {{"error", Severity::kError},
                                                                {"warning", Severity::kWarning},
                                                                {"note", Severity::kNote},
                                                                {"off", std::nullopt}});
                rule.is_off = !rule.severity;
              }},
             {"threshold",
              [&](const toml::node& value) { rule.threshold = ShareOf(value, "threshold"); }}});
      policy.rules.push_back(std::move(rule));
    }
  }

  void ReadBudgets(const toml::table& table, Policy& policy) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      const BudgetKind* const kind = FindBudgetKind(name);
      if (kind == nullptr) {
        const std::string nearest = Nearest(name, BudgetNames());
        throw Wrong{fmt::format("{}: there is no budget '{}'{}; there are: {}",
                                At(node, key.source()), name,
                                nearest.empty() ? "" : fmt::format(", did you mean '{}'?", nearest),
                                fmt::join(BudgetNames(), ", "))};
      }
      policy.budgets.push_back(BudgetFrom(TableOf(node, "budgets." + name), name, *kind));
    }
  }

  Budget BudgetFrom(const toml::table& table, const std::string& name,
                    const BudgetKind& kind) const {
    Budget budget;
    budget.name = name;
    budget.line = static_cast<int64_t>(table.source().begin.line);
    Keys keys;
    if (kind.has_max) {
      keys["max"] = [&](const toml::node& node) { ReadMax(node, kind, budget); };
    } else {
      keys["min"] = [&](const toml::node& node) {
        budget.min = kind.unit == BudgetUnit::kShare ? ShareOf(node, "min") : NumberOf(node, "min");
      };
    }
    if (name == kStepTimeBudget) {
      keys["stat"] = [&](const toml::node& node) {
        budget.stat = OneOf<std::string>(
            node, "stat",
            {{"mean", "mean"}, {"p50", "p50"}, {"p90", "p90"}, {"p95", "p95"}, {"p99", "p99"}});
      };
      keys["max-regression"] = [&](const toml::node& node) {
        budget.max_regression = ShareOf(node, "max-regression");
      };
    }
    if (name == kSamplesBudget) {
      keys["samples-per-step"] = [&](const toml::node& node) {
        budget.samples_per_step = NumberOf(node, "samples-per-step");
      };
    }
    Visit(table, fmt::format("[budgets.{}]", name), keys);
    if (!budget.max && !budget.max_share && !budget.min && !budget.max_regression) {
      Fail(table, fmt::format("[budgets.{}] sets no limit: {} is missing", name,
                              kind.has_max ? "max" : "min"));
    }
    return budget;
  }

  // A number of the figure's unit, of times also "5%" of the step, of memory "10 GiB".
  void ReadMax(const toml::node& node, const BudgetKind& kind, Budget& budget) const {
    const auto text = node.value_exact<std::string>();
    if (kind.unit == BudgetUnit::kShare) {
      budget.max = ShareOf(node, "max");
    } else if (text && kind.unit == BudgetUnit::kStepPart) {
      budget.max_share = ShareOf(node, "max");
    } else if (text && kind.unit == BudgetUnit::kBytes) {
      budget.max = BytesOf(node, *text);
    } else {
      budget.max = NumberOf(node, "max");
    }
  }

  double BytesOf(const toml::node& node, const std::string& text) const {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    while (unit.starts_with(' ')) unit.remove_prefix(1);
    constexpr std::pair<std::string_view, double> kUnits[] = {
        {"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
    for (const auto& [name, factor] : kUnits) {
      if (error == std::errc() && number >= 0 && unit == name) return number * factor;
    }
    Fail(node, "max has to be a number of bytes, or a text such as \"10 GiB\"");
  }

  void ReadSuppressions(const toml::node& node, Policy& policy) const {
    const toml::array* const list = node.as_array();
    if (list == nullptr) Fail(node, "suppressions are written as [[suppress]], once each");
    for (const toml::node& entry : *list) {
      Suppression suppression;
      suppression.where = At(entry);
      Visit(TableOf(entry, "suppress"), "[[suppress]]",
            {{"rule",
              [&](const toml::node& value) {
                suppression.rule = RuleOf(value.source(), StringOf(value, "rule"));
              }},
             {"match",
              [&](const toml::node& value) { suppression.match = StringOf(value, "match"); }},
             {"reason",
              [&](const toml::node& value) { suppression.reason = StringOf(value, "reason"); }},
             {"expires", [&](const toml::node& value) { suppression.expires = DateOf(value); }}});
      if (suppression.rule.empty()) Fail(entry, "[[suppress]] needs a rule: rule = \"TP301\"");
      if (suppression.reason.empty()) {
        Fail(entry, "[[suppress]] needs a reason, for those who read it next year");
      }
      policy.suppressions.push_back(std::move(suppression));
    }
  }

  // 2026-12-31, with quotes or without.
  Date DateOf(const toml::node& node) const {
    std::optional<toml::date> date = node.value_exact<toml::date>();
    if (const auto text = node.value_exact<std::string>()) {
      try {
        date = toml::parse("d = " + *text)["d"].value_exact<toml::date>();
      } catch (const toml::parse_error&) {
        date.reset();
      }
    }
    if (!date) Fail(node, "expires has to be a day: 2026-12-31");
    return Date{std::chrono::year{date->year}, std::chrono::month{date->month},
                std::chrono::day{date->day}};
  }

  const std::string& path_;
  std::map<const toml::node*, std::string> origins_;  // the flag that a value came from
};

}  // namespace

std::string TextOf(Date date) {
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()));
}

const RulePolicy* Policy::Of(std::string_view rule) const {
  const auto found =
      std::find_if(rules.begin(), rules.end(), [&](const RulePolicy& p) { return p.rule == rule; });
  return found == rules.end() ? nullptr : &*found;
}

const Budget* Policy::BudgetOf(std::string_view name) const {
  const auto found = std::find_if(budgets.begin(), budgets.end(),
                                  [&](const Budget& budget) { return budget.name == name; });
  return found == budgets.end() ? nullptr : &*found;
}

Result<Policy> ParsePolicy(std::string_view text, const std::string& path,
                           const PolicyChanges& changes) {
  try {
    return Reader(path).Read(text, changes);
  } catch (const Wrong& wrong) {
    return Error{wrong.text};
  }
}

Result<Policy> FindPolicy(const std::filesystem::path& path, const PolicyChanges& changes) {
  namespace fs = std::filesystem;
  fs::path file = path;
  std::error_code ignored;
  if (file.empty()) {
    for (fs::path folder = fs::current_path(ignored); !folder.empty();
         folder = folder.parent_path()) {
      if (fs::exists(folder / kPolicyFile, ignored)) {
        file = fs::proximate(folder / kPolicyFile, ignored);
        break;
      }
      // What stands above a repository is somebody else's.
      if (fs::exists(folder / ".git", ignored) || folder == folder.root_path()) break;
    }
  }
  if (file.empty()) return ParsePolicy("", "", changes);
  const Result<std::string> text = ReadSmallFile(file, kMostBytes);
  if (!text.ok()) return Error{text.error()};
  return ParsePolicy(text.value(), file.string(), changes);
}

}  // namespace trainprof
