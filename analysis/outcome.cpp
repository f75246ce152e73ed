#include "analysis/outcome.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/gain_spread.h"
#include "analysis/graph/latencies.h"
#include "analysis/graph/pinned_copies.h"
#include "analysis/host/program.h"
#include "trace/base/cancel.h"
#include "trace/base/parallel.h"

namespace trainprof {
namespace {

// With workers beside it the training thread itself may get slower, where processors are few: on
// kineto_resnet50 its other work went from 105 to 126 ms a step when the loader went from 0 to 4 workers.
constexpr double kContention = 1.2;
// Assumption::tensor_core_speedup.
constexpr double kLeastTensorSpeedup = 2;
constexpr double kMostTensorSpeedup = 16;
// Of a step, what fewer launches have to save before gaps between a graph's nodes count.
constexpr double kWorthAGraph = 0.02;

// For a batch that another thread or process makes.
bool HasWaitedForInput(const RankModel& model) {
  Duration waited;
  std::vector<Interval> own;
  for (const Row range : model.own_input) own.push_back(model.trace.ranges.interval(range));
  const IntervalSet waits = model.host.InputWait().Minus(IntervalSet::Union(std::move(own)));
  for (const Interval& wait : waits.intervals()) {
    // Sooner nobody is woken: the batch was there.
    if (wait.Length() >= kThreadPause) waited += model.device_steps.window.TotalWithin(wait);
  }
  return model.ShareOfWindow(waited) > kLoaderShare;
}

// Whether copies go with work of the host.
bool AnySaves(std::span<const Change* const> changes) {
  return std::any_of(changes.begin(), changes.end(), [](const Change* change) {
    return change->edit == Edit::kDropHostWork && !change->ops.empty();
  });
}

// All ways in which the world may answer, the likeliest first. Contention (OutcomeOf) apart.
std::vector<Assumption> Answers(const RankModel& model, std::span<const Change* const> changes) {
  const auto any = [&](Edit edit) { return AnyIs(changes, edit); };
  std::vector<Assumption> answers{{}};
  if (!any(Edit::kFeedInput) && HasWaitedForInput(model)) {
    answers.push_back({.loader_is_limited = true});
  }
  if (any(Edit::kDropWork)) answers.push_back({.drops_preparation = true});
  if (any(Edit::kPinCopies)) answers.push_back({.pinned_copies_overlap = true});
  if (any(Edit::kPinCopies) && PinnedBytesPerMicrosecond(model.trace) == 0) {
    answers.push_back({.pinned_bytes_per_us = kSlowLink});
    answers.push_back({.pinned_bytes_per_us = kFastLink});
  }
  if (AnySaves(changes)) answers.push_back({.saved_copies_overlap = true});
  if (any(Edit::kLaunchAsGraph)) answers.push_back({.closes_graph = true});
  if (any(Edit::kUseTensorCores)) {
    answers.push_back({.tensor_core_speedup = kLeastTensorSpeedup});
    answers.push_back({.tensor_core_speedup = kMostTensorSpeedup});
  }
  if (any(Edit::kKeepReplicas)) answers.push_back({.exchange_is_exposed = true});
  if (any(Edit::kOverlapCommunication)) answers.push_back({.waits_for_last_collective = true});
  for (Assumption& answer : answers) {
    answer.without_recording = &model.recording_cost;
    answer.own_input = model.own_input;
  }
  return answers;
}

struct Answer {
  double mean_ms = 0;
  int64_t every = 0;  // GainSpread::every
  double half_width_ms = 0;
  std::vector<double> gains_ms;  // by step
  std::vector<int64_t> after;    // ns, by step
};

Answer Ask(const RankModel& model, std::span<const Change* const> changes,
           const Assumption& assumption, std::span<const int64_t> before) {
  const std::vector<int64_t> after = model.step_replay->After(changes, assumption);
  std::vector<double> gains;
  for (size_t i = 0; i < before.size(); ++i) {
    gains.push_back(static_cast<double>(before[i] - after[i]) / 1e6);
  }
  if (gains.empty()) return {};
  const double mean =
      std::accumulate(gains.begin(), gains.end(), 0.0) / static_cast<double>(gains.size());
  const int64_t every = SpreadOf(gains, model.step_replay->numbers()).every;
  const double half_width = HalfWidth(gains, every);
  return {mean, every, half_width, std::move(gains), after};
}

// Under an assumption, against what steps take under it without the changes.
struct Question {
  Assumption assumption;
  std::span<const int64_t> before;
  std::optional<Answer> answer;
};

// On all cores that are left. Of a graph that closes it depends on the other answers whether it is asked for.
void AskAtOnce(const RankModel& model, std::span<const Change* const> changes,
               std::span<Question> questions) {
  std::vector<std::function<void()>> jobs;
  for (Question& question : questions) {
    if (question.assumption.closes_graph) continue;
    jobs.emplace_back([&] {
      CancelPoint();
      question.answer = Ask(model, changes, question.assumption, question.before);
    });
  }
  RunAll(jobs);
}

}  // namespace

double ContentionOf(const RankModel& model, double step_ms, double fed_ms) {
  const auto cores = static_cast<double>(CoresOfRank(model.trace));
  if (cores == 0 || fed_ms <= 0) return kContention;
  const double least_ms = step_ms * CoresUsed(model.trace, model.steps) / cores;
  return kContention * std::max(1.0, least_ms / fed_ms);
}

bool AnyIs(std::span<const Change* const> changes, Edit edit) {
  return std::any_of(changes.begin(), changes.end(),
                     [&](const Change* change) { return change->edit == edit; });
}

RecordingDoubt DoubtOfRecording(const RankModel& model, std::span<const Change* const> changes,
                                const Outcome& outcome) {
  RecordingDoubt doubt;
  for (const auto& other : model.other_recordings) {
    const Answer answer = Ask(model, changes, {.without_recording = &other.cost}, other.steps);
    const double more = std::max(0.0, answer.mean_ms) - outcome.likeliest_ms;
    doubt.less_ms = std::max(doubt.less_ms, -more);
    doubt.more_ms = std::max(doubt.more_ms, more);
  }
  return doubt;
}

Outcome OutcomeOf(const RankModel& model, std::span<const Change* const> changes) {
  const double step = model.step_replay->MeanNs() / 1e6;
  std::vector<Question> questions;
  for (const Assumption& assumption : Answers(model, changes)) {
    questions.push_back({assumption, model.steps_without_recording, std::nullopt});
  }
  const size_t with_silence = questions.size();
  if (!model.silence.Empty()) {
    questions.push_back(
        {{.silence = &model.silence_cut}, model.steps_without_silence, std::nullopt});
  }
  if (!model.steps_with_all_nodes.empty()) {
    questions.push_back({{.has_all_graph_nodes = true}, model.steps_with_all_nodes, std::nullopt});
  }
  AskAtOnce(model, changes, questions);
  Outcome outcome;
  const auto take = [&](Question& question) {
    if (!question.answer)
      question.answer = Ask(model, changes, question.assumption, question.before);
    Answer answer = *std::move(question.answer);
    // Who loses by a change takes it back.
    const double mean = std::max(0.0, answer.mean_ms);
    if (outcome.high_gains_ms.empty()) {
      outcome.likeliest_ms = mean;
      outcome.likeliest_steps = std::move(answer.after);
      outcome.every = answer.every;
    }
    if (mean > outcome.high_ms || outcome.high_gains_ms.empty()) {
      outcome.high_ms = mean;
      outcome.high_gains_ms = answer.gains_ms;
    }
    if (mean < outcome.low_ms) {
      outcome.low_ms = mean;
      outcome.low_gains_ms = std::move(answer.gains_ms);
    }
    outcome.half_width_ms = std::max(outcome.half_width_ms, answer.half_width_ms);
  };
  for (size_t i = 0; i < with_silence; ++i) {
    // A graph saves between its nodes, too; by itself that is worth no change.
    const bool closes_graph = questions[i].assumption.closes_graph;
    if (closes_graph && outcome.low_ms < kWorthAGraph * step) continue;
    take(questions[i]);
  }
  if (AnyIs(changes, Edit::kFeedInput)) {
    Question contended{{.without_recording = &model.recording_cost,
                        .contention = ContentionOf(model, step, step - outcome.high_ms)},
                       model.steps_without_recording,
                       std::nullopt};
    take(contended);
  }
  for (size_t i = with_silence; i < questions.size(); ++i) take(questions[i]);
  return outcome;
}

}  // namespace trainprof
