#include "profiler/report/phase_lines_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/words.h"
#include "profiler/report/text.h"

namespace trainprof {
namespace {

constexpr double kWorthOpening = 0.05;  // of the steps' time
constexpr double kWorthALine = 0.01;
constexpr size_t kMostLines = 5;
constexpr size_t kNameWidth = 48;

// With the function's class where there is room.
std::string TitleThatFits(const LineTime& line, size_t width) {
  std::string title = Title(line);
  if (title.size() <= width) return title;
  LineTime brief = line;
  brief.function.erase(0, brief.function.rfind('.') + 1);
  return Title(brief);
}

void AppendLine(std::string& out, const RankAnalysis& rank, std::string_view indent,
                const std::string& name, Duration total) {
  const std::string text = std::string(indent) + ShortName(name, kNameWidth - indent.size());
  out += fmt::format("  {:<50}{:>10.3f} {:>6.1f} %\n", text, rank.PerStepMs(total),
                     100 * rank.Share(total));
}

// The largest, and what is left of them in one line.
void AppendLargest(std::string& out, const RankAnalysis& rank, const std::vector<LineTime>& lines) {
  Duration rest;
  int64_t smaller = 0;
  size_t shown = 0;
  for (const LineTime& line : lines) {
    if (shown == kMostLines || rank.Share(line.total) < kWorthALine) {
      rest += line.total;
      ++smaller;
      continue;
    }
    constexpr std::string_view kIndent = "  ";
    AppendLine(out, rank, kIndent, TitleThatFits(line, kNameWidth - kIndent.size()), line.total);
    ++shown;
  }
  if (shown > 0 && rank.Share(rest) >= kWorthALine) {
    AppendLine(out, rank, "  ", Counted(smaller, "smaller one", "smaller ones"), rest);
  }
}

// "; 52 % decoding, 31 % reading": what making the batches was, where most of it is known by name.
std::string WorkText(const PhaseLines& phase) {
  constexpr double kWorthAWord = 0.05;
  std::string text;
  for (const WorkTime& time : phase.work) {
    const double share = static_cast<double>(time.total.ns) /
                         static_cast<double>(std::max<int64_t>(phase.total.ns, 1));
    if (time.work == BatchWork::kOther || share < kWorthAWord) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Percent(share), Name(time.work));
  }
  return text;
}

}  // namespace

std::string PhaseLinesText(const RankAnalysis& rank) {
  int64_t samples = 0;
  std::string out;
  for (const PhaseLines& phase : rank.host_lines) {
    samples += phase.count;
    if (rank.Share(phase.total) < kWorthOpening) continue;
    AppendLine(out, rank, "", std::string(Title(phase.phase)), phase.total);
    AppendLargest(out, rank, phase.lines);
    if (!phase.producers.empty()) {
      out += "    meanwhile, in the loader's workers and other threads\n";
      AppendLargest(out, rank, phase.producers);
    }
    const std::string work = WorkText(phase);
    if (!work.empty()) out += fmt::format("    making the batches was {}\n", work);
  }
  if (out.empty()) return out;
  const std::string by = rank.host_lines.front().sampled
                             ? Counted(samples, "sample of stacks", "samples of stacks")
                             : "by recorded Python function, at its first line";
  return fmt::format("\n  where that was, by source line ({})\n{}", by, out);
}

}  // namespace trainprof
