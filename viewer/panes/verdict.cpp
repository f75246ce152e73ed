// The sentence that comes first, and what it rests on.
#include "analysis/job/verdict.h"

#include <fmt/format.h>

#include <cctype>

#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"
#include "viewer/panes/inspector.h"

namespace trainprof {
namespace {

// What the steps are made of, when nobody marked them.
std::string StepsText(const Steps& steps) {
  switch (steps.source) {
    case StepSource::kNone:
      return "no step markers: figures are over the whole trace";
    case StepSource::kExplicit:
      break;
    case StepSource::kOptimizer:
      return "no step markers: steps inferred from optimizer steps";
    case StepSource::kLoader:
      return "no step markers: steps inferred from loader waits";
    case StepSource::kInferred:
      return "no step markers: steps inferred from periodic GPU work";
  }
  return fmt::format("{} {}", steps.count(), steps.count() == 1 ? "step" : "steps");
}

// Who the sentence is about: one of how many.
std::string RankText(const State& state, uint32_t rank, const RankAnalysis& analysis) {
  const size_t there = state.document->ranks();
  if (there < 2 && analysis.world_size < 2) return {};
  std::string text = there > 1 ? fmt::format("{} of {} ranks", RankName(state, rank), there)
                               : RankName(state, rank);
  if (analysis.world_size > static_cast<int64_t>(there)) {
    text += fmt::format(", world size {}", analysis.world_size);
  }
  return text;
}

// Why no GPU work is seen, as far as the recorder knew.
std::string NoGpuText(const RankAnalysis& analysis) {
  if (!analysis.devices.empty()) return {};
  const std::string_view state = EnvironmentValue(analysis.environment, fact::kCuptiState);
  if (!state.empty() && state != fact::kGpuRecording) {
    return "no GPU work recorded: " + std::string(state);
  }
  if (!analysis.device_doubt.empty()) return "GPU work not known: " + analysis.device_doubt;
  return analysis.source == SourceKind::kRecording
             ? "no GPU work recorded: the program used no GPU"
             : "no GPU events in this trace: only the host is shown";
}

void Append(std::string& text, const std::string& part) {
  if (part.empty()) return;
  if (!text.empty()) text += "   |   ";
  text += part;
}

}  // namespace

void DrawVerdict(PaneContext& context) {
  const State& state = context.state;
  if (!state.HasLines()) return;
  const uint32_t rank = state.document->SlowestRank();
  const RankAnalysis* const analysis = state.document->Analysis(rank);
  std::string sentence = "Analysing ...";
  std::string basis;
  bool only_host = false;
  if (analysis != nullptr) {
    sentence = Verdict(*analysis);
    sentence.front() =
        static_cast<char>(std::toupper(static_cast<unsigned char>(sentence.front())));
    Append(basis, RankText(state, rank, *analysis));
    Append(basis, StepsText(analysis->steps));
    if (analysis->device_steps.count() != analysis->steps.count()) {
      Append(basis, fmt::format("GPU recorded in {} of them", analysis->device_steps.count()));
    }
    only_host = analysis->devices.empty();
    Append(basis, NoGpuText(*analysis));
  }
  if (state.document->progress().done && state.document->progress().events == 0) {
    basis = "there is no event in this trace";
  }
  {
    const FontScope font(context.theme.bold_title);
    WrappedText(sentence);  // whose end is its figure
  }
  ImGui::PushStyleColor(ImGuiCol_Text, only_host ? context.theme.warning : context.theme.text_dim);
  CutText(basis.empty() ? " " : basis);
  ImGui::PopStyleColor();
}

}  // namespace trainprof
