// The card that `trainprof run` prints on stderr when the program has ended.
#include "profiler/session/end_card.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "profiler/report/text.h"
#include "trace/io/printable.h"

namespace trainprof {
namespace {

// A program's command line in the card's title; the manifest has all of it.
constexpr size_t kMaxCommandCharacters = 60;
constexpr size_t kMaxNotes = 4;

std::string Grouped(uint64_t number) {
  std::string digits = std::to_string(number);
  for (ptrdiff_t i = static_cast<ptrdiff_t>(digits.size()) - 3; i > 0; i -= 3) {
    digits.insert(static_cast<size_t>(i), ",");
  }
  return digits;
}

std::string Count(uint64_t number, const char* one, const char* many) {
  return fmt::format("{} {}", Grouped(number), number == 1 ? one : many);
}

std::string CommandLine(const std::vector<std::string>& program) {
  std::string line;
  for (const std::string& word : program) {
    line += (line.empty() ? "" : " ") + ShellQuoted(word);
    if (line.size() > kMaxCommandCharacters)
      return OneLine(line.substr(0, kMaxCommandCharacters)) + "...";
  }
  return OneLine(line);
}

std::string Title(const CardContents& card) {
  const double seconds = std::chrono::duration<double>(card.wall_time).count();
  const std::string how =
      card.end.signal != 0
          ? fmt::format("ended by signal {} ({})", card.end.signal, strsignal(card.end.signal))
          : fmt::format("exit code {}", card.end.exit_code);
  return fmt::format("trainprof: {} ran {:.{}f} s, {}", CommandLine(card.program), seconds,
                     seconds < 10 ? 2 : 1, how);
}

std::string Recorded(const RecordingFacts& facts, bool sampled) {
  if (facts.processes == 0 && !facts.without_hooks.empty()) {
    return "recorded: stacks of Python, CPU, memory and disk; no process that uses torch had "
           "trainprof's hooks";
  }
  if (facts.processes == 0 && !sampled) {
    return "recorded: nothing. No process used torch, CUDA or NVTX, and sampling was off";
  }
  if (facts.processes == 0) {
    return "recorded: CPU, memory and disk only. No process used torch, CUDA or NVTX: the report "
           "shows how to name your steps";
  }
  std::string line = "recorded: ";
  if (facts.ranks > 0) line += Count(facts.ranks, "rank", "ranks") + ", ";
  return line + fmt::format("{}, {}, {}", Count(facts.processes, "process", "processes"),
                            Count(facts.events, "event", "events"), HumanBytes(facts.bytes));
}

std::string Dropped(const RecordingFacts& facts) {
  const std::string by_cupti =
      facts.dropped_by_cupti == 0
          ? ""
          : fmt::format("; {} by CUPTI", Count(facts.dropped_by_cupti, "record", "records"));
  std::string line = fmt::format("dropped: {}", Count(facts.dropped, "record", "records"));
  if (facts.dropped == 0 && facts.thinned == 0) return line + by_cupti;
  if (facts.thinned > 0) {
    line += fmt::format("; {} thinned near the size bound (--max-size, --full)",
                        Count(facts.thinned, "detail record", "detail records"));
  } else if (facts.failure.empty()) {
    line += " (the size bound was reached: --max-size, --full)";
  }
  return line + by_cupti;
}

// Signals that a program's own fault raises.
bool IsCrash(int signal) {
  constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
  return std::find(std::begin(kFaults), std::end(kFaults), signal) != std::end(kFaults);
}

std::vector<std::string> Notes(const CardContents& card) {
  std::vector<std::string> notes = card.notes;
  if (IsCrash(card.end.signal) && card.facts.processes > 0) {
    notes.push_back(
        "a crash: to see whether recording has a part in it, run the program alone, and with trainprof run --no-gpu; "
        "one that comes with trainprof only is ours to mend");
  }
  const RecordingFacts& facts = card.facts;
  if (!facts.failure.empty()) {
    notes.push_back(fmt::format("recording stopped in {}: {}",
                                Count(facts.failed_processes, "process", "processes"),
                                facts.failure));
  }
  notes.insert(notes.end(), facts.without_hooks.begin(), facts.without_hooks.end());
  if (!facts.gpu_trouble.empty()) notes.push_back("GPU: " + facts.gpu_trouble);
  if (facts.running > 0) {
    notes.push_back(fmt::format("{} of the run still going; what they record is left unsealed",
                                Count(facts.running, "process is", "processes are")));
  } else if (facts.left_raw > 0) {
    notes.push_back(fmt::format("{} left unsealed (time or disk ran out); it can be read as it is",
                                Count(facts.left_raw, "segment", "segments")));
  }
  if (notes.size() > kMaxNotes) notes.resize(kMaxNotes);
  for (std::string& note : notes) note = "note: " + OneLine(note);
  return notes;
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<std::string> VerdictLines(const CardContents& card, size_t room) {
  std::vector<std::string> lines = LinesOf(card.verdict);
  if (lines.empty() && !card.no_verdict_reason.empty()) {
    lines.push_back("no verdict here: " + OneLine(card.no_verdict_reason));
  }
  if (lines.size() > room) {
    lines.resize(room - 1);
    lines.push_back("  ... (more in the report)");
  }
  return lines;
}

}  // namespace

std::string RenderEndCard(const CardContents& card, bool colour) {
  const std::string folder = ShellQuoted(card.directory.lexically_normal().string());
  std::vector<std::string> tail = {Recorded(card.facts, card.sampled), Dropped(card.facts)};
  if (!card.facts.gpu_memory.empty()) {
    tail.push_back("CUPTI takes " + OneLine(card.facts.gpu_memory));
  }
  for (std::string& note : Notes(card)) tail.push_back(std::move(note));
  tail.push_back("in " + folder);
  if (card.facts.processes > 0) {
    tail.push_back("next:");
    tail.push_back("  trainprof report " + folder);
    tail.push_back("  trainprof export " + folder + " -o trace.json.gz");
  } else if (card.sampled) {
    tail.push_back("next:");
    tail.push_back("  trainprof report " + folder);
  }
  std::vector<std::string> lines = VerdictLines(card, kMaxCardLines - 1 - tail.size());
  lines.insert(lines.end(), tail.begin(), tail.end());
  std::string text = Title(card) + "\n";
  if (colour) text = fmt::format("{}{}{}\n", kBold, Title(card), kStyleEnd);
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace trainprof
