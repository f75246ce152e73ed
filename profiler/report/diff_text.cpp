// A comparison for people, on a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/words.h"
#include "profiler/report/diff_report.h"
#include "profiler/report/text.h"
#include "trace/io/printable.h"

namespace trainprof {
namespace {

constexpr size_t kRowTitleWidth = 44;
constexpr size_t kMostRows = 4;      // of a table
constexpr size_t kMostFindings = 8;  // unless they are new
constexpr size_t kMostRuns = 3;      // of a side
// Of the step: what a row must differ by to be shown, but for the first.
constexpr double kWorthADifference = 0.001;

std::string_view Heading(DiffTable::By by) {
  switch (by) {
    case DiffTable::By::kClass:
      return "GPU, by class";
    case DiffTable::By::kPhase:
      return "Training thread, by phase";
    case DiffTable::By::kOperation:
      return "Kernels and copies";
    case DiffTable::By::kRank:
      break;
  }
  return "Ranks";
}

class Writer {
 public:
  Writer(const Diff& diff, bool all, bool color)
      : diff_(diff),
        all_(all),
        style_(color),
        unit_(StepUnit::Of(std::max(diff.step.a_ms, diff.step.b_ms))) {}

  std::string Write() {
    out_ = style_.Bold(Wrap(OneLine(DiffVerdict(diff_)), 4, kTextWidth)) + "\n";
    for (const DiffDoubt& loss : diff_.losses) Say("INCONCLUSIVE", loss.text);
    AppendRuns("A", diff_.a);
    AppendRuns("B", diff_.b);
    const bool is_refused = diff_.result == DiffResult::kRefused;
    for (const DiffDoubt& doubt : diff_.refusals)
      Say(is_refused ? "refused" : "although", doubt.text);
    for (const DiffDoubt& doubt : diff_.cautions) Say("note", doubt.text);
    if (is_refused || (diff_.result == DiffResult::kEqual && !all_)) return std::move(out_);
    for (const DiffTable& table : diff_.tables) AppendTable(table);
    AppendFindings();
    return std::move(out_);
  }

 private:
  void Say(std::string_view what, const std::string& text) {
    out_ += fmt::format("{}: {}\n", what, Wrap(OneLine(text), 4, kTextWidth - what.size() - 2));
  }

  void AppendRuns(std::string_view side, const std::vector<DiffRun>& runs) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (i == kMostRuns && !all_) {
        const auto more = static_cast<int64_t>(runs.size() - i);
        out_ += fmt::format("{}  and {}\n", side, Counted(more, "more run", "more runs"));
        return;
      }
      const DiffRun& run = runs[i];
      std::string text = fmt::format("{}, {}, {}", run.kind,
                                     Counted(static_cast<int64_t>(run.ranks), "rank", "ranks"),
                                     Counted(static_cast<int64_t>(run.steps), "step", "steps"));
      if (run.steps > 0) {
        const StepUnit unit = StepUnit::Of(run.step_ms);
        text += fmt::format(" of {} {}", unit.Plain(run.step_ms), unit.name);
      }
      out_ += fmt::format("{}  {}: {}\n", side, OneLine(run.path), text);
    }
  }

  // "  idle: input wait       1.20       4.10      +2.90   +2.60 to +3.20"
  void AppendRow(const std::string& title, const DiffRow& row) {
    std::string interval = "not known";
    if (row.bounds) {
      interval = fmt::format("{} to {}{}", unit_.Signed(row.bounds->low, 1),
                             unit_.Signed(row.bounds->high, 1), row.IsClear() ? "" : "  ~");
    }
    if (row.name == kMore) interval.clear();
    out_ += fmt::format("  {:<{}}{:>10}{:>10}{:>10}   {}", title, kRowTitleWidth,
                        unit_.Plain(row.a_ms, 1), unit_.Plain(row.b_ms, 1),
                        unit_.Signed(row.Difference(), 1), interval);
    while (out_.back() == ' ') out_.pop_back();
    out_ += "\n";
  }

  // Kernels that have one title are told apart by what their templates were made with.
  std::string TitleOf(const DiffTable& table, const DiffRow& row) const {
    std::string title = row.title;
    const auto same = std::ranges::count_if(
        table.rows, [&](const DiffRow& other) { return other.title == row.title; });
    if (same > 1) title = row.name;
    std::string times;
    const double apart = std::abs(row.a_count - row.b_count);
    if (row.a_count > 0 && row.b_count > 0 && apart > 0.01 * row.a_count) {
      times = fmt::format(" ({:.1f}x -> {:.1f}x)", row.a_count, row.b_count);
    } else if (row.a_count > 0 && row.b_count == 0) {
      times = " (gone)";
    } else if (row.a_count == 0 && row.b_count > 0) {
      times = " (new)";
    }
    return ShortName(OneLine(title), kRowTitleWidth - 1 - times.size()) + times;
  }

  void AppendTable(const DiffTable& table) {
    out_ += style_.Bold(fmt::format("\n{:<{}}{:>10}{:>10}{:>10}   {}\n",
                                    fmt::format("{}, {}/step", Heading(table.by), unit_.name),
                                    kRowTitleWidth + 2, "A", "B", "B - A", "90 % interval"));
    DiffRow rest{std::string(kMore), "", 0, 0, {}, 0, 0};
    int64_t left_out = 0;
    size_t shown = 0;
    for (const DiffRow& row : table.rows) {
      const bool is_small = std::abs(row.Difference()) < kWorthADifference * table.whole.a_ms;
      if (all_ || (shown < kMostRows && (!is_small || shown == 0))) {
        AppendRow(TitleOf(table, row), row);
        ++shown;
        continue;
      }
      rest.a_ms += row.a_ms;
      rest.b_ms += row.b_ms;
      ++left_out;
    }
    const bool adds_up = table.by != DiffTable::By::kRank;
    if (left_out > 0 && adds_up) AppendRow(Counted(left_out, "more row", "more rows"), rest);
    if (left_out > 0 && !adds_up) {
      out_ += fmt::format("  {}\n", Counted(left_out, "more rank", "more ranks"));
    }
    AppendRow(adds_up ? table.whole.title : "mean of ranks", table.whole);
  }

  std::string CostText(const FindingDiff& finding) const {
    const auto cost = [&](std::optional<double> ms) { return ms ? unit_.Plain(*ms, 1) : "-"; };
    return fmt::format("costs {} -> {} {}/step", cost(finding.a_cost_ms), cost(finding.b_cost_ms),
                       unit_.name);
  }

  static std::string RunsText(int64_t runs, size_t of, std::string_view side) {
    if (of == 1) return {};
    return fmt::format(", in {} of {} runs of {}", runs, of, side);
  }

  // Findings from there on that are one finding's in several places: what it costs is that of all of them.
  size_t PlacesFrom(size_t first) const {
    const FindingDiff& one = diff_.findings[first];
    size_t last = first + 1;
    while (last < diff_.findings.size()) {
      const FindingDiff& other = diff_.findings[last];
      const bool is_same = other.state == one.state && other.title == one.title &&
                           other.a_cost_ms == one.a_cost_ms && other.b_cost_ms == one.b_cost_ms &&
                           other.a_runs == one.a_runs && other.b_runs == one.b_runs;
      if (!is_same) break;
      ++last;
    }
    return last - first;
  }

  void AppendFindings() {
    if (diff_.findings.empty()) {
      out_ += "\nNo findings on either side, in what was checked.\n";
      return;
    }
    out_ += style_.Bold("\nFindings\n");
    int64_t left_out = 0;
    size_t lines = 0;
    for (size_t i = 0, places = 0; i < diff_.findings.size(); i += places) {
      const FindingDiff& finding = diff_.findings[i];
      places = all_ ? 1 : PlacesFrom(i);
      if (!all_ && lines++ >= kMostFindings && finding.state != FindingState::kNew) {
        ++left_out;
        continue;
      }
      const std::string place = NormalName(finding.where);
      std::string text =
          fmt::format("{} {} {}, {}", style_.Severity(finding.severity), finding.code, finding.rule,
                      place.empty() ? "source not recorded" : place);
      if (places > 1) {
        text += " and " + Counted(static_cast<int64_t>(places) - 1, "more place", "more places");
      }
      text += "; " + CostText(finding);
      text += RunsText(finding.a_runs, diff_.a.size(), "A");
      text += RunsText(finding.b_runs, diff_.b.size(), "B");
      if (!finding.note.empty()) text += "; " + finding.note;
      std::string state(Name(finding.state));
      std::replace(state.begin(), state.end(), '_', ' ');
      out_ += fmt::format("  {:<12}{}\n", state, Wrap(OneLine(text), 14, kTextWidth));
    }
    if (left_out > 0) out_ += fmt::format("  and {} (--all)\n", Counted(left_out, "more", "more"));
  }

  static constexpr std::string_view kMore = "\n";  // the name of no row

  const Diff& diff_;
  const bool all_;
  const Style style_;
  const StepUnit unit_;
  std::string out_;
};

}  // namespace

std::string DiffText(const Diff& diff, bool all, const RenderOptions& options) {
  std::string text = Writer(diff, all, options.color).Write();
  if (text.find("  ~\n") != std::string::npos) {
    text += "\n~ cannot be told from noise\n";
  }
  return SeveralLines(text, options.color);
}

}  // namespace trainprof
