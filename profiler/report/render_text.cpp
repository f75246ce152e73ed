// The report for people, on a terminal: verdict, findings, accounts, what was not checked, quality.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "analysis/job/gain_text.h"
#include "analysis/job/verdict.h"
#include "analysis/words.h"
#include "profiler/report/coverage_text.h"
#include "profiler/report/gpu_text.h"
#include "profiler/report/memory_text.h"
#include "profiler/report/operators_text.h"
#include "profiler/report/phase_lines_text.h"
#include "profiler/report/ranks_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/steps_text.h"
#include "profiler/report/text.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

constexpr size_t kIndent = 10;
constexpr size_t kSitesShown = 4;
constexpr size_t kBarWidth = 24;  // cells for 100 %
constexpr std::string_view kAlike = " (the ranks are alike)";

std::string SiteText(const Site& site) {
  std::string text = site.file.empty() ? site.function : fmt::format("{}:{}", site.file, site.line);
  if (!site.file.empty() && !site.function.empty()) text += " " + site.function;
  if (!site.op.empty() && site.op != site.function) text += " (" + site.op + ")";
  if (text.empty()) text = "source not recorded";
  return fmt::format("{}  x{}", text, site.count);
}

// ", step 12": which one the evidence begins in, by the number that people know it by.
std::string StepText(const RankAnalysis& rank, const Evidence& evidence) {
  const Step* const step = rank.StepOf(evidence);
  return step == nullptr ? "" : fmt::format(", step {}", step->number);
}

void AppendFinding(std::string& out, const RankAnalysis& rank, size_t number,
                   const Finding& finding, const Style& style) {
  out += fmt::format("{:>3}. {} {} {}  {}\n", number, style.Severity(finding.severity),
                     finding.code, finding.rule, style.Bold(finding.title));
  const auto row = [&](std::string_view label, std::string_view text) {
    out += fmt::format("     {:<{}}{}\n", label, kIndent, Wrap(text, 5 + kIndent, kTextWidth));
  };
  row("gain",
      fmt::format("{}{}   (cost now {}, {}confidence {:.0f} %)", GainText(rank, finding.gain),
                  FurtherText(rank, finding.gain), TimeText(rank.DevicePerStepMs(finding.cost)),
                  finding.count > 0 ? Counted(finding.count, "instance", "instances") + ", " : "",
                  100 * finding.confidence));
  const std::string spread = SpreadText(finding.gain);
  if (!spread.empty()) row("", spread);
  for (size_t i = 0; i < std::min(finding.where.size(), kSitesShown); ++i) {
    row(i == 0 ? "where" : "", SiteText(finding.where[i]));
  }
  if (finding.where.size() > kSitesShown) {
    const auto more = static_cast<int64_t>(finding.where.size() - kSitesShown);
    row("", fmt::format("and {}", Counted(more, "more place", "more places")));
  }
  for (size_t i = 0; i < finding.evidence.size(); ++i) {
    row(i == 0 ? "evidence" : "",
        fmt::format("{} at {:.3f} ms{}", finding.evidence[i].what,
                    Duration{finding.evidence[i].when.begin.ns}.ToMilliseconds(),
                    StepText(rank, finding.evidence[i])));
  }
  row("do", finding.advice);
  if (!finding.fix.empty()) {
    std::string fix = finding.fix;
    for (size_t at = fix.find('\n'); at != std::string::npos; at = fix.find('\n', at + 1)) {
      fix.insert(at + 1, std::string(5 + kIndent, ' '));
    }
    out += fmt::format("     {:<{}}{}\n", "fix", kIndent, fix);
  }
  if (!finding.verify.empty()) row("verify", finding.verify);
  for (size_t i = 0; i < finding.confidence_reasons.size(); ++i) {
    row(i == 0 ? "but" : "", finding.confidence_reasons[i]);
  }
  out += "\n";
}

// What one account is over.
struct Over {
  Duration window;
  int64_t steps = 1;

  double PerStepMs(Duration total) const {
    return total.ToMilliseconds() / static_cast<double>(steps);
  }
};

void AppendAccount(std::string& out, const Over& over, const std::vector<AccountLine>& account) {
  for (const AccountLine& line : account) {
    if (line.total.ns == 0) continue;
    const double share = RankAnalysis::Part(line.total, over.window);
    const bool idle = line.name.starts_with("idle_");
    const std::string meaning = line.meaning.empty() ? "" : fmt::format(" ({})", line.meaning);
    const std::string title = fmt::format("{}{}{}", idle ? "idle: " : "", line.title, meaning);
    out += fmt::format("  {:<50}{:>10.3f} {:>6.1f} %  {}\n", title, over.PerStepMs(line.total),
                       100 * share, Bar(share, kBarWidth));
  }
  out += fmt::format("  {:<50}{:>10.3f} {:>6.1f} %\n", "sum", over.PerStepMs(over.window), 100.0);
}

// What "other" of the thread's account holds, where it is a large part. Adds up to it.
// "python gpu_model_runner.py(1351): execute_model": without the file's folders where these leave no room.
std::string OtherName(const OtherItem& item, size_t width) {
  const std::string whole = fmt::format("{} {}", Name(item.kind), item.name);
  if (item.kind != OtherKind::kPython || whole.size() <= width) return ShortName(whole, width);
  const std::string_view name = item.name;
  const size_t folders = name.substr(0, name.find('(')).rfind('/');
  if (folders == name.npos) return ShortName(whole, width);
  return ShortName(fmt::format("{} {}", Name(item.kind), name.substr(folders + 1)), width);
}

void AppendOther(std::string& out, const RankAnalysis& rank) {
  constexpr double kWorthOpening = 0.10;  // of the steps' time
  constexpr double kWorthALine = 0.01;
  constexpr size_t kMostLines = 8;
  constexpr size_t kNameWidth = 48;
  const OtherTime& other = rank.host_other;
  if (rank.Share(other.total) < kWorthOpening || !other.HasNames()) return;
  const auto line = [&](const std::string& name, Duration total) {
    out += fmt::format("  {:<50}{:>10.3f} {:>6.1f} %\n", name, rank.PerStepMs(total),
                       100 * rank.Share(total));
  };
  out += fmt::format("\n  what \"other\" is, by name\n");
  OtherItem rest{OtherKind::kMore, "", {}, 0};
  size_t lines = 0;
  for (const OtherItem& item : other.items) {
    if (item.kind == OtherKind::kNothing) continue;
    if (item.kind == OtherKind::kMore || lines == kMostLines ||
        rank.Share(item.total) < kWorthALine) {
      rest.total += item.total;
      rest.count += item.kind == OtherKind::kMore ? item.count : 1;
      continue;
    }
    line(OtherName(item, kNameWidth), item.total);
    ++lines;
    for (const OtherItem& inside : item.inside) {
      if (inside.kind == OtherKind::kMore || rank.Share(inside.total) < kWorthALine) continue;
      constexpr std::string_view kIndent = "  of it ";
      line(std::string(kIndent) + OtherName(inside, kNameWidth - kIndent.size()), inside.total);
    }
  }
  if (rest.count > 0) {
    line(Counted(rest.count, "smaller one", "smaller ones"), rest.total);
  }
  const OtherItem& last = other.items.back();
  if (last.kind == OtherKind::kNothing) line("nothing recorded", last.total);
}

void AppendRank(std::string& out, const JobAnalysis& job, const RankAnalysis& rank,
                const Style& style) {
  out += StepsText(rank);
  const char* const unit = rank.steps.count() > 0 ? "ms/step" : "ms";
  for (const DeviceReport& device : rank.devices) {
    if (device.stray) {
      out += fmt::format("\n{} did almost nothing ({:.3f} ms in all): ignored\n", GpuName(device),
                         device.busy.ToMilliseconds());
      continue;
    }
    out += style.Bold(fmt::format("\n{}{}, {}\n", GpuName(device), DeviceFactsText(device), unit));
    AppendAccount(out, {rank.device_window, rank.device_steps.divisor()}, device.account);
    if (device.occupancy >= 0) {
      out += fmt::format("  theoretical occupancy of its kernels, by time: {:.0f} %\n",
                         100 * device.occupancy);
    }
  }
  out += CuptiMemoryText(rank);
  if (rank.devices.empty()) {
    out += rank.device_doubt.empty()
               ? "\nNo device work in the trace: this is the host's side only.\n"
               : fmt::format("\nWhat devices did is not known: {}. This is the host's side only.\n",
                             rank.device_doubt);
    const std::string_view state = GpuRecordingState(rank);
    if (!state.empty()) out += fmt::format("GPU recording: {}\n", state);
  }
  if (rank.has_host_phases || rank.host_other.HasNames()) {
    // Where no phase of a loop is seen, nothing says that it trains.
    const bool trains = rank.workload != Workload::kInference && rank.has_host_phases;
    out += style.Bold(fmt::format("\n{}, {}{}\n", trains ? "Training thread" : "Main thread", unit,
                                  rank.phases_are_sampled ? ", by samples of its stacks" : ""));
    AppendAccount(out, {rank.window, rank.steps.divisor()}, rank.host_account);
    AppendOther(out, rank);
    out += PhaseLinesText(rank);
    out += OperatorsText(rank);
  }
  if (rank.loader_wait.total.ns > 0 && !rank.devices.empty()) {
    out += fmt::format(
        "\nThe {} thread waited for its loader for {:.3f} {}; during {:.3f} of them "
        "({:.1f} % of the {}) the GPU was idle\n",
        rank.workload == Workload::kInference ? "main" : "training",
        rank.DevicePerStepMs(rank.loader_wait.total), unit,
        rank.DevicePerStepMs(rank.loader_wait.during_idle),
        100 * rank.DeviceShare(rank.loader_wait.during_idle),
        rank.steps.count() > 0 ? "mean step" : "time");
  }
  out += "\n";
  out += rank.findings.empty() ? NoFindingsText(job, rank) + "\n"
                               : style.Bold("Findings, largest gain first\n") + ReplayLine(rank);
  for (size_t i = 0; i < rank.findings.size(); ++i) {
    AppendFinding(out, rank, i + 1, rank.findings[i], style);
  }
  if (!rank.findings.empty() && !rank.passed.empty()) {
    out += fmt::format("Checked, not found: {}\n", Join(rank.passed));
  }
}

// What the verdict does not cover, of all ranks.
void AppendCoverage(std::string& out, const JobAnalysis& job) {
  for (const std::string& line : NotCheckedLines(job)) {
    out += fmt::format("Not checked: {}\n", Wrap(line, 4, kTextWidth));
  }
  // Ranks that lose time alike are not listed one by one: the slowest speaks for them.
  const std::string uncovered = UncoveredText(SlowestRank(job));
  if (!uncovered.empty()) {
    out += Wrap("No rule covers " + uncovered, 4, kTextWidth) + "\n";
  }
  for (const std::string& line : QualityLines(job)) {
    out += fmt::format("Trace quality: {}\n", line);
  }
}

// One line a rule: the ranks that have the finding, and the one with the largest gain.
void AppendOtherRanks(std::string& out, const JobAnalysis& job, const RankAnalysis& shown,
                      const Style& style) {
  struct Entry {
    const Finding* worst;
    std::vector<int64_t> ranks;
    int64_t worst_rank;
  };
  std::vector<Entry> entries;
  for (const RankAnalysis& rank : job.ranks) {
    if (&rank == &shown) continue;
    for (const Finding& finding : rank.findings) {
      const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
        return entry.worst->rule == finding.rule && entry.worst->severity == finding.severity;
      });
      if (same == entries.end()) {
        entries.push_back({&finding, {rank.rank}, rank.rank});
        continue;
      }
      if (same->ranks.back() != rank.rank) same->ranks.push_back(rank.rank);
      if (finding.gain.high_ms_per_step > same->worst->gain.high_ms_per_step) {
        same->worst = &finding;
        same->worst_rank = rank.rank;
      }
    }
  }
  if (entries.empty()) return;
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.worst->severity > b.worst->severity;
  });
  out += style.Bold("\nFindings of other ranks\n");
  for (const Entry& entry : entries) {
    const std::string where =
        entry.ranks.size() > 1 ? fmt::format(", the most in rank {}", entry.worst_rank) : "";
    out += fmt::format(
        "  {} {} {}  {}\n", style.Severity(entry.worst->severity), entry.worst->code,
        entry.worst->rule,
        Wrap(fmt::format("{}{}: {}", RanksText(job, entry.ranks), where, entry.worst->title), 4,
             kTextWidth));
  }
  out += "\n";
}

// "findings of other ranks: 2 errors, 1 warning (ranks 0 to 3, 7)", where the card shows none of
// them.
std::string OtherRanksLine(const JobAnalysis& job, const RankAnalysis& shown) {
  std::array<size_t, 3> counts{};  // by severity
  std::vector<int64_t> ranks;
  for (const RankAnalysis& rank : job.ranks) {
    if (&rank == &shown || rank.findings.empty()) continue;
    ranks.push_back(rank.rank);
    for (const Finding& finding : rank.findings) ++counts[static_cast<size_t>(finding.severity)];
  }
  if (ranks.empty()) return {};
  std::string text;
  for (size_t i = counts.size(); i-- > 0;) {
    if (counts[i] == 0) continue;
    const std::string name(Name(static_cast<Severity>(i)));
    text += (text.empty() ? "" : ", ") + Counted(static_cast<int64_t>(counts[i]), name, name + "s");
  }
  return fmt::format("findings of other ranks: {} ({})\n", text, RanksText(job, ranks));
}

// All ranks': the machine's facts stand with one rank of each host.
void AppendHost(std::string& out, const JobAnalysis& job, const Style& style) {
  bool any = false;
  for (const RankAnalysis& rank : job.ranks) {
    for (const HostFact& fact : rank.host_facts) {
      if (!any) out += style.Bold("\nHost and GPUs, as sampled\n");
      any = true;
      const std::string who = job.ranks.size() > 1 ? fmt::format("rank {}: ", rank.rank) : "";
      out += fmt::format("  {}\n", Wrap(who + fact.text, 4, kTextWidth));
    }
  }
}

// Why the verdict is none, or not all of one: right behind it.
void AppendDoubts(std::string& out, const JobAnalysis& job, const Style& style) {
  for (const std::string& line : DoubtLines(job)) {
    out += fmt::format("{} {}\n", style.Bold("INCONCLUSIVE"), Wrap(line, 4, kTextWidth));
  }
}

std::vector<std::string_view> WithoutHooks(const RankAnalysis& rank) {
  std::vector<std::string_view> processes;
  for (const auto& [name, value] : rank.environment) {
    if (name.starts_with(fact::kNoHooks)) processes.push_back(value);
  }
  return processes;
}

// Processes whose steps and phases nothing named.
void AppendWithoutHooks(std::string& out, const JobAnalysis& job, const Style& style) {
  for (const RankAnalysis& rank : job.ranks) {
    for (const std::string_view process : WithoutHooks(rank)) {
      out += fmt::format("{} {}\n", style.Bold("NOT HOOKED"), Wrap(process, 4, kTextWidth));
    }
  }
}

// For a run in which nothing told trainprof what it was doing.
void AppendHowToRecord(std::string& out, const RankAnalysis& rank, const Style& style) {
  const bool silent = rank.source == SourceKind::kRecording && rank.ranges == 0 &&
                      rank.api_calls == 0 && rank.kernels == 0 && rank.copies == 0;
  if (!silent || !WithoutHooks(rank).empty()) return;
  out +=
      style.Bold("\nNothing but these samples was recorded: no process used torch, CUDA or NVTX\n");
  const std::string_view wiped = EnvironmentValue(rank.environment, fact::kWipedEnvironment);
  if (!wiped.empty()) {
    out += "  " +
           Wrap(fmt::format(
                    "The environment of {} was wiped (env -i, sudo, a job script): what tells "
                    "it to record did not arrive. Pass the environment on, or start "
                    "trainprof run inside, as in: env -i PATH=\"$PATH\" trainprof run -- python "
                    "train.py",
                    wiped),
                2, kTextWidth) +
           "\n";
  }
  out +=
      R"(  A Python script that trains with torch needs no change. To see steps and phases of another, name them:

      import trainprof                         # is there under trainprof run
      for i in range(100):
          with trainprof.range("data_wait"):
              batch = next(batches)
          ...                                  # forward, backward, optimizer
          trainprof.step()

  In C++: nvtxRangePushA("step"), nvtxRangePop() of <nvtx3/nvToolsExt.h>.
)";
}

// Why SlowestRank() is the one that is shown.
std::string WhyThisRank(const JobAnalysis& job) {
  if (AreAlike(job)) return std::string(kAlike);
  if (job.waits.late.empty()) return ", the slowest";
  return job.waits.changes ? ", which others wait for most often" : ", which others wait for";
}

Result<std::string> Render(const JobAnalysis& job, const RenderOptions& options) {
  const Style style(options.color);
  const RankAnalysis& slowest = SlowestRank(job);
  std::string out = fmt::format(
      "{} ({}{})\n", job.path, job.kind,
      job.ranks.size() > 1 ? fmt::format(", {} ranks", job.ranks.size()) : std::string());
  if (job.ranks.size() > 1) {
    out += fmt::format("{} rank {}{}: {}\n", style.Bold("VERDICT"), slowest.rank,
                       AreAlike(job) ? kAlike : "", JobVerdict(job));
    AppendDoubts(out, job, style);
    AppendWithoutHooks(out, job, style);
    out += "\n";
    out += RanksOverview(job, style);
    out +=
        fmt::format("\n{}\n", style.Bold(fmt::format("Rank {}{}", slowest.rank, WhyThisRank(job))));
  } else {
    out += fmt::format("{} {}\n", style.Bold("VERDICT"), Verdict(slowest));
    AppendDoubts(out, job, style);
    AppendWithoutHooks(out, job, style);
    out += "\n";
  }
  AppendRank(out, job, slowest, style);
  AppendOtherRanks(out, job, slowest, style);
  AppendCoverage(out, job);
  for (const RankAnalysis& each : job.ranks) {
    const std::string memory = MemoryText(each);
    if (memory.empty()) continue;
    const std::string who = job.ranks.size() > 1 ? fmt::format(" of rank {}", each.rank) : "";
    out += style.Bold(fmt::format("\nMemory{}\n", who)) + memory;
  }
  AppendHost(out, job, style);
  AppendHowToRecord(out, slowest, style);
  return out;
}

}  // namespace

std::string RenderCard(const JobAnalysis& job, const RenderOptions& options) {
  const Style style(options.color);
  const RankAnalysis& rank = SlowestRank(job);
  const std::string who = job.ranks.size() > 1
                              ? fmt::format("rank {}{}: ", rank.rank, AreAlike(job) ? kAlike : "")
                              : "";
  std::string out = fmt::format("{} {}{}\n", style.Bold("verdict"), who, JobVerdict(job));
  const std::vector<std::string> doubts = DoubtLines(job);
  if (!doubts.empty()) {
    out += fmt::format("inconclusive: {}{}\n", doubts.front(),
                       doubts.size() == 1 ? "" : fmt::format(" (and {} more)", doubts.size() - 1));
  }
  const std::string memory = MemoryCardLine(rank);
  const size_t shown = memory.empty() ? 3 : 2;  // the card has no room for more
  for (size_t i = 0; i < std::min(rank.findings.size(), shown); ++i) {
    const Finding& finding = rank.findings[i];
    out += fmt::format("{} {} {}: {}\n", style.Severity(finding.severity), finding.code,
                       finding.rule, finding.title);
    out += "  gain " + GainText(rank, finding.gain);
    if (finding.gain.spread.every > 0) {
      out += fmt::format(", most once in {} steps", finding.gain.spread.every);
    }
    if (!finding.where.empty()) out += fmt::format("; {}", SiteText(finding.where.front()));
    out += "\n";
  }
  if (rank.findings.empty()) out += NoFindingsText(job, rank) + "\n";
  out += memory;
  out += OtherRanksLine(job, rank);
  const std::vector<std::string> not_checked = NotCheckedLines(job);
  if (!not_checked.empty()) {
    out += fmt::format("not checked: {}\n", fmt::join(not_checked, "; "));
  }
  const std::string uncovered = UncoveredText(rank);
  if (!uncovered.empty()) out += fmt::format("no rule covers {}\n", uncovered);
  const auto counted = [](size_t count, std::string_view one, std::string_view many) {
    return Counted(static_cast<int64_t>(count), one, many);
  };
  out +=
      fmt::format("{} after {} of warm-up; {}, {}, {}\n",
                  counted(rank.steps.count(), "step", "steps"), rank.steps.warmup_steps,
                  counted(rank.ranges, "range", "ranges"), counted(rank.api_calls, "call", "calls"),
                  counted(rank.kernels + rank.copies, "device operation", "device operations"));
  return out;
}

namespace renderers {
extern const Renderer text = {"text for people", Render, true};
}  // namespace renderers

}  // namespace trainprof
