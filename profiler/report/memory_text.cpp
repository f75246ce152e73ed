#include "profiler/report/memory_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analysis/words.h"
#include "profiler/report/text.h"

namespace trainprof {
namespace {

std::string BytesOf(double bytes) { return HumanBytes(static_cast<uint64_t>(std::llround(bytes))); }

// "2 tensors of 12.0 MiB each step", "1.5 tensors of 4 B each step", "1 tensor of 4 B every 4 steps".
std::string HowMany(const KeptMemory& kept, std::string_view one, std::string_view many) {
  const double whole = std::round(kept.per_step);
  const bool is_whole = whole >= 1 && std::abs(kept.per_step - whole) < 0.05 * whole;
  const double each = static_cast<double>(kept.bytes_per_step) / std::max(kept.per_step, 1e-3);
  if (is_whole) {
    return fmt::format("{} of {} each step", Counted(static_cast<int64_t>(whole), one, many),
                       BytesOf(each));
  }
  if (kept.per_step > 0 && kept.per_step < 1) {
    return fmt::format("1 {} of {} every {:.0f} steps", one, BytesOf(each), 1 / kept.per_step);
  }
  return fmt::format("{:.1f} {} of {} each step", kept.per_step, many, BytesOf(each));
}

std::string KeptText(const KeptMemory& kept) {
  const std::string place = PlaceOf(kept);
  const std::string device =
      kept.device.empty() || kept.device == "cpu" ? "" : " on " + kept.device;
  if (kept.kind == "graph") {
    const std::string what = kept.variable.empty() ? "a tensor" : kept.variable;
    return fmt::format(
        "{} lets the graph behind {}{} grow, by {:.0f} nodes each step: what they saved stays",
        place, what, device, kept.graphs);
  }
  if (kept.kind == "block") {
    return fmt::format("{} allocated {}{} that stay", place, HowMany(kept, "block", "blocks"),
                       device);
  }
  if (kept.kind == "python") {
    return fmt::format("{} keeps {}", place, HowMany(kept, "Python object", "Python objects"));
  }
  const bool with_graph = kept.graphs > kept.per_step / 2;
  return fmt::format("{} keeps {}{}{}", place, HowMany(kept, "tensor", "tensors"), device,
                     !with_graph           ? ""
                     : kept.per_step < 1.5 ? ", with its graph"
                                           : ", with their graphs");
}

std::string GrowthText(const MemorySeries& series) {
  if (!series.judged) {
    return fmt::format("{} to tell whether it grows",
                       series.steps == 0 ? "no steps" : "too few steps");
  }
  if (series.growth_bytes_per_step <= 0) {
    return fmt::format("no growth (noise {})", BytesOf(series.noise_bytes));
  }
  return fmt::format("grows {}/step", BytesOf(series.growth_bytes_per_step));
}

std::string CostText(const StepMemory& memory) {
  std::string text = fmt::format("--memory took {:.3f} ms/step", memory.cost.ToMilliseconds());
  if (memory.searched_steps > 0) {
    text += fmt::format(", and {:.0f} ms in its search over {}", memory.search.ToMilliseconds(),
                        Counted(memory.searched_steps, "step", "steps"));
  }
  return text;
}

// How much of what the process grows by these lines hold; "" where there is nothing to compare.
std::string ExplainedText(const StepMemory& memory) {
  double growth = 0;
  for (const MemorySeries& series : memory.series) {
    if (series.name == "resident") growth += series.growth_bytes_per_step;
  }
  double held = 0;
  for (const KeptMemory& kept : memory.kept) {
    const bool on_host = kept.device.empty() || kept.device == "cpu";
    if (on_host) held += static_cast<double>(kept.bytes_per_step);
  }
  if (growth <= 0 || held <= 0) return "";
  return fmt::format("in sight of Python these hold {} of the {} that come with each step",
                     BytesOf(held), BytesOf(growth));
}

// Why no line is named; "" where that needs no word.
std::string NoLinesText(const StepMemory& memory) {
  if (!memory.missing.empty()) return "not seen: " + memory.missing;
  if (memory.searched_steps == 0) {
    return "the run was too short to look for lines that keep memory";
  }
  const bool grows =
      std::any_of(memory.series.begin(), memory.series.end(),
                  [](const MemorySeries& series) { return series.growth_bytes_per_step > 0; });
  if (!memory.kept.empty() || !grows) return "";
  return "no tensor and no Python object is kept by the steps that were searched: it is held by "
         "native code, or by what other steps do";
}

}  // namespace

std::string MemoryText(const RankAnalysis& rank) {
  const StepMemory& memory = rank.memory;
  std::string out;
  if (memory.series.empty()) return out;
  std::set<int64_t> processes;
  for (const MemorySeries& series : memory.series) processes.insert(series.pid);
  for (const MemorySeries& series : memory.series) {
    const std::string who = processes.size() > 1 ? fmt::format(" (process {})", series.pid) : "";
    out += fmt::format("  {:<22}{:>10} at the peak, {}\n", series.name + who,
                       BytesOf(static_cast<double>(series.peak_bytes)), GrowthText(series));
  }
  const auto line = [&](const std::string& text, std::string_view indent = "  ") {
    if (!text.empty()) out += fmt::format("{}{}\n", indent, Wrap(text, 6, kTextWidth));
  };
  for (const KeptMemory& kept : memory.kept) line(KeptText(kept), "    ");
  line(ExplainedText(memory));
  line(NoLinesText(memory));
  line(CostText(memory));
  return out;
}

std::string MemoryCardLine(const RankAnalysis& rank) {
  const MemorySeries* most = nullptr;
  for (const MemorySeries& series : rank.memory.series) {
    const double growth = series.growth_bytes_per_step;
    if (growth > 0 && (most == nullptr || growth > most->growth_bytes_per_step)) most = &series;
  }
  if (most == nullptr) return "";
  const std::string line =
      rank.memory.kept.empty() ? "" : ": " + KeptText(rank.memory.kept.front());
  return fmt::format("memory ({}) grows {}/step{}\n", most->name,
                     BytesOf(most->growth_bytes_per_step), line);
}

}  // namespace trainprof
