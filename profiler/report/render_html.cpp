// A page in one file: verdict, steps by cause, findings, the worst and a typical step, tables, the trace's quality.
// It loads nothing, and says all without JavaScript and without its styles, as a strict CSP forbids them.
#include <fmt/format.h>

#include <algorithm>

#include "analysis/job/gain_text.h"
#include "analysis/job/verdict.h"
#include "analysis/words.h"
#include "profiler/report/coverage_text.h"
#include "profiler/report/gate_text.h"
#include "profiler/report/gpu_text.h"
#include "profiler/report/html_picture.h"
#include "profiler/report/html_text.h"
#include "profiler/report/html_trace.h"
#include "profiler/report/memory_text.h"
#include "profiler/report/renderer.h"
#include "profiler/report/results.h"
#include "profiler/report/steps_text.h"
#include "profiler/report/text.h"

#include "html_assets.inc"

namespace trainprof::renderers {
namespace {

using html::Escaped;
using html::EscapedLines;
using html::TableText;

constexpr size_t kMostPageBytes = 2'000'000;
constexpr size_t kMostBars = 200;
constexpr size_t kMostRows = 200;
constexpr size_t kMostCards = 40;
constexpr size_t kMostPlaces = 20;
constexpr size_t kMostCellBytes = 300;

std::string Short(std::string_view text) { return Escaped(ShortName(text, kMostCellBytes)); }

std::string Section(std::string_view title, const std::string& body) {
  return body.empty() ? "" : fmt::format("<section><h2>{}</h2>\n{}</section>\n", title, body);
}

std::string List(const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string text = "<ul>\n";
  for (const std::string& line : lines) text += fmt::format("<li>{}</li>\n", Escaped(line));
  return text + "</ul>\n";
}

// The steps of a rank by what they went to: of the device that did most, else of its thread.
struct RibbonData {
  std::string of;
  std::vector<html::StepColumn> columns;
  size_t steps = 0;
};

template <class Class, class Splits>
RibbonData RibbonOf(std::string of, const Steps& steps, const Splits& splits) {
  RibbonData ribbon{std::move(of), {}, std::min(steps.count(), splits.size())};
  const size_t columns = std::min(ribbon.steps, kMostBars);
  for (size_t column = 0; column < columns; ++column) {
    size_t longest = ribbon.steps * column / columns;
    int64_t most = -1;
    for (size_t s = longest; s < ribbon.steps * (column + 1) / columns; ++s) {
      int64_t total = 0;
      for (const Duration part : splits[s]) total += part.ns;
      if (total > most) longest = s;
      most = std::max(most, total);
    }
    html::StepColumn bar{fmt::format("step {}: {:.3f} ms", steps.steps[longest].number,
                                     Duration{most}.ToMilliseconds()),
                         {}};
    for (size_t i = 0; i < splits[longest].size(); ++i) {
      const Duration part = splits[longest][i];
      const auto c = static_cast<Class>(i);
      if (part.ns == 0) continue;
      bool idle = false;
      if constexpr (std::is_same_v<Class, DeviceClass>) idle = IsIdle(c);
      bar.title +=
          fmt::format("; {}{} {:.3f}", idle ? "idle, " : "", Title(c), part.ToMilliseconds());
      bar.parts.push_back({{{}, {part.ns}}, CategoryOf(c), idle, Title(c)});
    }
    ribbon.columns.push_back(std::move(bar));
  }
  return ribbon;
}

RibbonData Ribbon(const RankAnalysis& rank, const RankSteps& steps) {
  const DeviceReport* busiest = nullptr;
  size_t at = 0;
  for (size_t d = 0; d < std::min(rank.devices.size(), steps.devices.size()); ++d) {
    if (rank.devices[d].stray || (busiest != nullptr && rank.devices[d].busy <= busiest->busy))
      continue;
    busiest = &rank.devices[d];
    at = d;
  }
  if (busiest == nullptr) return RibbonOf<HostClass>("the stepping thread", rank.steps, steps.host);
  return RibbonOf<DeviceClass>(GpuName(*busiest), rank.device_steps, steps.devices[at].steps);
}

// What the bars' colours mean, in the order of the bars from below.
std::string Legend(const std::vector<html::StepColumn>& columns) {
  std::vector<html::PictureBar> shown;
  for (const html::StepColumn& column : columns) {
    for (const html::PictureBar& part : column.parts) {
      const bool is_known =
          std::any_of(shown.begin(), shown.end(),
                      [&](const html::PictureBar& each) { return each.name == part.name; });
      if (!is_known) shown.push_back(part);
    }
  }
  std::string text = "<ul class=\"legend\">\n";
  for (const html::PictureBar& part : shown) {
    text += fmt::format("<li>{}{}{}</li>\n", html::Swatch(part.category, part.idle),
                        part.idle ? "idle: " : "", part.name);
  }
  return text + "</ul>\n";
}

std::string StepsSection(const RankAnalysis& rank, const RankSteps& steps) {
  std::string text;
  if (const RibbonData ribbon = Ribbon(rank, steps); !ribbon.columns.empty()) {
    Duration longest;
    std::vector<Duration> lengths;
    for (const html::StepColumn& column : ribbon.columns) {
      Duration length;
      for (const html::PictureBar& part : column.parts) length += part.time.Length();
      lengths.push_back(length);
      longest = std::max(longest, length);
    }
    std::nth_element(lengths.begin(), lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2),
                     lengths.end());
    const Duration limit = std::min(longest, Duration{3 * lengths[lengths.size() / 2].ns});
    text += html::StepsSvg("each step by what its time went to, of " + ribbon.of, ribbon.columns,
                           limit);
    text += Legend(ribbon.columns);
    text += fmt::format(
        "<p class=\"dim\">A bar is {}, of {}; full height is {:.3f} ms{}.</p>\n",
        ribbon.steps > ribbon.columns.size() ? "the longest of some steps" : "a step",
        Escaped(ribbon.of), limit.ToMilliseconds(), limit < longest ? ", longer ones are cut" : "");
  }
  return text + html::Paragraph(StepsText(rank));
}

// `account`: a line a class, in their order.
template <class Class>
std::string AccountTable(const std::string& caption, const std::vector<AccountLine>& account,
                         Duration window, int64_t steps, bool any_step) {
  TableText table(caption, {html::Words("what"), {any_step ? "ms a step" : "ms"}, {"share"}});
  const auto cells = [&](const std::string& what, Duration time) {
    return std::vector<std::string>{
        what, fmt::format("{:.3f}", time.ToMilliseconds() / static_cast<double>(steps)),
        fmt::format("{:.1f} %", 100 * RankAnalysis::Part(time, window))};
  };
  Duration sum;
  for (size_t i = 0; i < account.size(); ++i) {
    const AccountLine& line = account[i];
    if (line.total.ns == 0) continue;
    const bool idle = line.name.starts_with("idle_");
    const Category category = CategoryOf(static_cast<Class>(i));
    table.Row(
        cells(fmt::format("{}{}{}{}", html::Swatch(category, idle), idle ? "idle: " : "",
                          Escaped(line.title),
                          line.meaning.empty() ? "" : fmt::format(" ({})", Escaped(line.meaning))),
              line.total));
    sum += line.total;
  }
  if (table.rows() > 1) table.Sum(cells("together", sum));
  return table.rows() == 0 ? "" : std::move(table).Finish();
}

std::string Accounts(const RankAnalysis& rank) {
  std::string text;
  for (const DeviceReport& device : rank.devices) {
    if (device.stray) continue;
    text += AccountTable<DeviceClass>(Escaped(GpuName(device) + DeviceFactsText(device)),
                                      device.account, rank.device_window,
                                      rank.device_steps.divisor(), rank.device_steps.count() > 0);
  }
  if (rank.devices.empty()) {
    text += fmt::format(
        "<p>No device work{}: this is the host's side only.</p>\n",
        rank.device_doubt.empty() ? " in the trace" : " is known: " + Escaped(rank.device_doubt));
  }
  if (rank.has_host_phases) {
    text += AccountTable<HostClass>(
        rank.workload == Workload::kInference ? "Main thread" : "Training thread",
        rank.host_account, rank.window, rank.steps.divisor(), rank.steps.count() > 0);
  }
  return text;
}

std::string Card(const RankAnalysis& rank, size_t number, const Finding& finding,
                 const std::string& picture) {
  std::string rows;
  const auto row = [&](std::string_view what, const std::string& markup) {
    if (!markup.empty()) rows += fmt::format("<dt>{}</dt><dd>{}</dd>\n", what, markup);
  };
  row("gain",
      fmt::format("<b>{}</b>{} (cost now {}, confidence {:.0f} %)",
                  Escaped(GainText(rank, finding.gain)), Escaped(FurtherText(rank, finding.gain)),
                  TimeText(rank.DevicePerStepMs(finding.cost)), 100 * finding.confidence));
  std::string places;
  for (size_t i = 0; i < std::min(finding.where.size(), kMostPlaces); ++i) {
    const std::string place = PlaceText(finding.where[i]);
    places +=
        fmt::format("{}<code>{}</code> ({} times)", i == 0 ? "" : "<br>",
                    place.empty() ? "source not recorded" : Short(place), finding.where[i].count);
  }
  if (finding.where.size() > kMostPlaces) {
    places += fmt::format("<br>and {} more places", finding.where.size() - kMostPlaces);
  }
  row("where", places);
  std::string evidence;
  for (const Evidence& item : finding.evidence) {
    const Step* const step = rank.StepOf(item);
    evidence += fmt::format("{}{} at {:.3f} ms{}", evidence.empty() ? "" : "<br>",
                            Escaped(item.what), Duration{item.when.begin.ns}.ToMilliseconds(),
                            step == nullptr ? "" : fmt::format(", step {}", step->number));
  }
  row("evidence", evidence + picture);
  row("do", Escaped(finding.advice));
  if (!finding.fix.empty()) {
    row("fix", fmt::format("<pre tabindex=\"0\"><code>{}</code></pre>", EscapedLines(finding.fix)));
  }
  row("verify", Escaped(finding.verify));
  std::string buts;
  for (const std::string& reason : finding.confidence_reasons)
    buts += (buts.empty() ? "" : "<br>") + Escaped(reason);
  row("but", buts);
  return fmt::format(
      "<article class=\"{0}\" id=\"finding-{1}\"><h3><b class=\"severity\">{0}</b> {2} {3}: {4}</h3>\n<dl>\n{5}</dl></article>\n",
      Name(finding.severity), number, Escaped(finding.code), Escaped(finding.rule),
      Escaped(finding.title), rows);
}

std::string Findings(const JobAnalysis& job, const RankAnalysis& rank,
                     const html::TraceParts& parts) {
  if (rank.findings.empty()) return html::Paragraph(NoFindingsText(job, rank));
  std::string text =
      fmt::format("<p class=\"dim\">Largest gain first. {}</p>\n", EscapedLines(ReplayLine(rank)));
  for (size_t i = 0; i < std::min(rank.findings.size(), kMostCards); ++i) {
    text += Card(rank, i + 1, rank.findings[i], i < parts.evidence.size() ? parts.evidence[i] : "");
  }
  if (!rank.passed.empty())
    text +=
        fmt::format("<p class=\"dim\">Checked, not found: {}</p>\n", Escaped(Join(rank.passed)));
  return text;
}

std::string Ranks(const JobAnalysis& job) {
  if (job.ranks.size() < 2) return "";
  TableText table("Ranks", {{"rank"},
                            {"steps"},
                            {"median ms"},
                            {"mean ms"},
                            {"GPU busy"},
                            {"waits ms a step"},
                            html::Words("first finding")});
  for (size_t i = 0; i < std::min(job.ranks.size(), kMostRows); ++i) {
    const RankAnalysis& rank = job.ranks[i];
    std::string busy;
    for (const DeviceReport& device : rank.devices) {
      if (!device.stray)
        busy += fmt::format("{}{:.1f} %", busy.empty() ? "" : ", ",
                            100 * rank.DeviceShare(device.busy));
    }
    const bool waits = job.waits.Any() && job.waits.ranks[i].collectives > 0;
    table.Row(
        {fmt::format("{}", rank.rank), fmt::format("{}", rank.steps.count()),
         fmt::format("{:.3f}", rank.steps.Median().ToMilliseconds()),
         fmt::format("{:.3f}", rank.steps.MeanMilliseconds()), busy,
         waits ? fmt::format("{:.3f}", rank.PerStepMs(job.waits.ranks[i].wait)) : "",
         rank.findings.empty() ? "" : Short(rank.findings[0].code + " " + rank.findings[0].title)});
  }
  std::string text = std::move(table).Finish();
  if (job.ranks.size() > kMostRows)
    text += fmt::format("<p>and {} more ranks</p>\n", job.ranks.size() - kMostRows);
  return text;
}

std::string Gate(const JobAnalysis& job, const RenderOptions& options) {
  if (options.gate == nullptr) return "";
  const CheckReport report = CheckReportOf(job, options);
  std::string text = fmt::format("<p><b>{}</b></p>\n", Escaped(GateVerdict(report.gate)));
  std::vector<std::string> lines;
  for (const JudgedBudget& budget : report.gate.budgets) {
    const bool is_open = budget.state == GateState::kInconclusive;
    lines.push_back(fmt::format("{}: {}",
                                budget.state == GateState::kFailed ? "broken"
                                : is_open                          ? "not known"
                                                                   : "kept",
                                budget.text));
  }
  for (const std::string& line : report.gate.complaints) lines.push_back(line);
  return text + List(lines);
}

std::string Quality(const JobAnalysis& job) {
  std::vector<std::string> lines;
  for (const std::string& line : NotCheckedLines(job)) lines.push_back("Not checked: " + line);
  if (const std::string text = UncoveredText(SlowestRank(job)); !text.empty())
    lines.push_back("No rule covers " + text);
  for (const std::string& line : QualityLines(job)) lines.push_back("Trace quality: " + line);
  if (lines.empty()) lines.push_back("Nothing is known to be missing.");
  return List(lines);
}

std::string Environment(const JobAnalysis& job, const RankAnalysis& rank) {
  std::vector<std::string> facts;
  for (const RankAnalysis& each : job.ranks) {
    for (const HostFact& fact : each.host_facts) {
      if (facts.size() == kMostRows) break;
      facts.push_back((job.ranks.size() > 1 ? fmt::format("rank {}: ", each.rank) : "") +
                      fact.text);
    }
  }
  std::string text = List(facts);
  const std::string memory = MemoryText(rank);
  if (!memory.empty()) text += fmt::format("<pre tabindex=\"0\">{}</pre>\n", EscapedLines(memory));
  TableText table("Environment", {html::Words("what"), html::Words("value")});
  for (const auto& [name, value] : rank.environment) {
    if (table.rows() == kMostRows) break;
    table.Row({Short(name), Short(value)});
  }
  if (table.rows() > 0) {
    text += "<details><summary>What the trace says of its environment</summary>\n" +
            std::move(table).Finish() + "</details>\n";
  }
  return text;
}

std::string Head(const JobAnalysis& job) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src '{}'; script-src '{}'; "
      "base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>trainprof: {}</title>\n"
      "<style>{}</style></head>\n<body>\n",
      kHtmlStyleHash, kHtmlScriptHash, Short(job.path), kHtmlStyle);
}

Result<std::string> RenderHtml(const JobAnalysis& job, const RenderOptions& options) {
  const RankAnalysis& rank = SlowestRank(job);
  const auto index = static_cast<size_t>(&rank - job.ranks.data());
  html::TraceParts parts;
  std::string events = "<p>No timeline: the input was a stream, which cannot be read twice.</p>\n";
  if (options.visit_traces) {
    Result<html::TraceParts> read = html::PartsOfTrace(rank, options);
    if (!read.ok()) return Error{read.error()};
    parts = std::move(read).value();
    events = std::move(parts.timelines);
  }
  const bool several = job.ranks.size() > 1;
  const std::string who = several ? fmt::format(", rank {}", rank.rank) : "";
  const auto page = [&](const std::string& pictures, const std::string& tables) {
    return Head(job) + std::string(html::HatchDefinition()) +
           fmt::format("<header><p class=\"dim\">trainprof: {} ({})</p>\n<h1>{}{}</h1>\n",
                       Short(job.path), Escaped(job.kind),
                       several ? fmt::format("rank {}: ", rank.rank) : "",
                       Escaped(JobVerdict(job))) +
           (DoubtLines(job).empty() ? "" : "<p><b>Inconclusive</b></p>\n" + List(DoubtLines(job))) +
           "</header>\n<main>\n" + Section("The gate", Gate(job, options)) +
           Section("Steps" + who,
                   index < job.steps.size() ? StepsSection(rank, job.steps[index]) : "") +
           Section("Findings" + who, Findings(job, rank, parts)) +
           Section("Where the time goes" + who, Accounts(rank)) +
           Section("Timeline" + who, pictures) + Section("By name and by line" + who, tables) +
           Section("Ranks", Ranks(job)) + Section("What is not known", Quality(job)) +
           Section("Machine" + who, Environment(job, rank)) +
           fmt::format("</main>\n<script>{}</script>\n</body></html>\n", kHtmlScript);
  };
  std::string text = page(events, parts.tables);
  if (text.size() <= kMostPageBytes) return text;
  parts.evidence.clear();
  text = page(events, parts.tables);
  if (text.size() <= kMostPageBytes) return text;
  return page("<p>The pictures are left out: the page would be too large.</p>\n", parts.tables);
}

}  // namespace

extern const Renderer html = {"a page in one file, with pictures", RenderHtml};

}  // namespace trainprof::renderers
