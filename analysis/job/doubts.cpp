// Why a verdict is not conclusive: each reason in a function of its own.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "analysis/job/coverage.h"
#include "analysis/words.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// Warnings about events that have no place in time, or a wrong one. A few are noise; where they are
// more than kMostSetAside of all events, what they belong to is not judged.
constexpr std::string_view kSetAsideKinds[] = {
    "missing_time", "bad_time",          "missing_duration", "negative_duration",
    "zero_time",    "time_out_of_range", "time_outlier",     "not_an_event",
    "wrong_type",   "unmatched_begin",   "unmatched_end",    "unmatched_pop"};
constexpr double kMostSetAside = 0.01;

// Kinds whose counts are files, not records.
bool IsUnreadable(const QualityItem& item) {
  return item.kind == "unreadable_file" || item.kind == "unreadable_segment";
}

// "2 x corrupt_chunk, 1 x lost_chunk"
std::string Listed(const std::vector<QualityItem>& items) {
  std::string text;
  for (const QualityItem& item : items) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", item.count, item.kind);
  }
  return text;
}

void Merge(const QualityItem& item, std::vector<QualityItem>& items) {
  const auto same = std::find_if(items.begin(), items.end(),
                                 [&](const QualityItem& other) { return other.kind == item.kind; });
  if (same == items.end()) {
    items.push_back(item);
  } else {
    same->count += item.count;
  }
}

// Numbers come from traces: sums of these cannot overflow.
constexpr int64_t kMostRanks = int64_t{1} << 40;
bool IsPlausible(int64_t rank) { return rank >= 0 && rank < kMostRanks; }

class Doubts {
 public:
  explicit Doubts(const JobAnalysis& job) : job_(job) {}

  std::vector<Doubt> Find() {
    CountLosses();
    FindMissingFiles();
    FindMissingRanks();
    for (const RankAnalysis& rank : job_.ranks) {
      FindNothingToJudge(rank);
      FindUnrecordedDevices(rank);
      FindUntrustedTimes(rank);
    }
    return std::move(doubts_);
  }

 private:
  Doubt& Add(std::string_view id, std::string text, const RankAnalysis* rank = nullptr,
             std::vector<QualityItem> quality = {}) {
    const auto same = std::find_if(doubts_.begin(), doubts_.end(), [&](const Doubt& other) {
      return other.id == id && other.text == text;
    });
    Doubt& doubt = same != doubts_.end() ? *same : doubts_.emplace_back();
    doubt.id = id;
    doubt.text = std::move(text);
    if (rank != nullptr) doubt.ranks.push_back(rank->rank);
    for (const QualityItem& item : quality) Merge(item, doubt.quality);
    return doubt;
  }

  // Whatever is data loss counts. Losses have no place in time: each may touch the window.
  void CountLosses() {
    Doubt lost{"data_loss", "", {}, {}, false};
    Doubt unreadable{"unreadable", "", {}, {}, false};
    const auto take = [&](const QualityItem& item, const RankAnalysis* rank) {
      if (item.severity != QualitySeverity::kDataLoss) return;
      Doubt& doubt = IsUnreadable(item) ? unreadable : lost;
      Merge(item, doubt.quality);
      if (rank != nullptr && (doubt.ranks.empty() || doubt.ranks.back() != rank->rank)) {
        doubt.ranks.push_back(rank->rank);
      }
    };
    for (const QualityItem& item : job_.elsewhere) take(item, nullptr);
    for (const RankAnalysis& rank : job_.ranks) {
      for (const QualityItem& item : rank.quality) take(item, &rank);
    }
    if (!unreadable.quality.empty()) {
      unreadable.ranks.clear();  // whose file it was is not known: one rank only keeps the count
      unreadable.text = fmt::format("something of the input cannot be read: {}",
                                    unreadable.quality.front().detail);
      doubts_.push_back(std::move(unreadable));
    }
    if (lost.quality.empty()) return;
    lost.text = "records are lost or damaged: " + Listed(lost.quality);
    doubts_.push_back(std::move(lost));
  }

  void FindMissingFiles() {
    if (!job_.run.no_manifest.empty()) {
      Add("no_manifest",
          job_.run.no_manifest + ": whether files of the recording are missing cannot be told");
    }
    for (const std::string& file : job_.run.damaged_files) {
      Add("unreadable", fmt::format("something of the input cannot be read: {} is damaged", file));
    }
    const std::vector<std::string>& files = job_.run.missing_files;
    if (files.empty()) return;
    Add("missing_file", fmt::format("the manifest names {} that the recording lacks: {}{}",
                                    Counted(static_cast<int64_t>(files.size()), "file", "files"),
                                    files.front(), files.size() == 1 ? "" : ", ..."));
  }

  // Ranks that a folder should hold and that were not judged. A recording does not know how many
  // there were: one machine's may begin at any rank, and end with the last that is there.
  void FindMissingRanks() {
    if (!job_.whole) return;
    std::set<int64_t> judged;
    int64_t ranks = 0;
    for (const RankAnalysis& rank : job_.ranks) {
      if (!rank.rank_known || !IsPlausible(rank.rank)) continue;
      judged.insert(rank.rank);
      ranks = std::max({ranks, std::min(rank.world_size, kMostRanks), rank.rank + 1});
    }
    if (judged.empty()) return;
    int64_t first = job_.ranks.front().source == SourceKind::kRecording ? *judged.begin() : 0;
    for (const int64_t silent : job_.silent_ranks) {
      if (!IsPlausible(silent)) continue;
      if (!judged.contains(silent)) first = std::min(first, silent);
      ranks = std::max(ranks, silent + 1);
    }
    std::string missing;
    int64_t next = first;
    const auto note = [&](int64_t end) {
      if (next < end) {
        missing += missing.empty() ? "" : ", ";
        missing += end - next == 1 ? std::to_string(next) : fmt::format("{} to {}", next, end - 1);
      }
      next = end + 1;
    };
    for (const int64_t rank : judged) note(rank);
    note(ranks);
    if (missing.empty()) return;
    Add("missing_rank", fmt::format("of {} ranks these were not judged, for lack of a trace with "
                                    "steps or device work: {}",
                                    ranks - first, missing));
  }

  // The most telling reason why a rank gives no verdict of its own.
  void FindNothingToJudge(const RankAnalysis& rank) {
    const bool has_steps = rank.steps.count() > 0;
    const bool has_device_work = rank.kernels + rank.copies > 0;
    const std::string window = WindowOptions(rank);
    const bool has_named_phases = rank.has_host_phases && !rank.phases_are_sampled;
    if (!has_steps && !has_device_work && !has_named_phases && !window.empty()) {
      Add("window_never_opened",
          fmt::format("the window of the recording never opened ({}): nothing was recorded",
                      window),
          &rank);
    } else if (!has_steps && job_.run.Failed()) {
      Add("died_before_a_step", "no step is complete: " + HowItEnded(), &rank);
    } else if (!has_steps && !has_device_work) {
      Add("nothing_to_judge", "there are no steps and no device work in the trace", &rank);
    } else if (rank.passed.empty() && rank.findings.empty()) {
      Add("no_rule_checked", "no rule could be checked", &rank);
    }
  }

  // The options that say when to record; "" where recording was on throughout.
  static std::string WindowOptions(const RankAnalysis& rank) {
    const std::string options(EnvironmentValue(rank.environment, fact::kRecordingOptions));
    for (const std::string_view key : {"steps=", "delay_ms=", "duration_ms=", "capture="}) {
      if (options.find(key) != std::string::npos) return options;
    }
    return {};
  }

  std::string HowItEnded() const {
    if (job_.run.signal) return fmt::format("the program died of signal {}", *job_.run.signal);
    if (job_.run.ended) {
      return fmt::format("the program ended with exit code {}", job_.run.exit_code.value_or(0));
    }
    return "the run has no end on record: it still goes on, or was killed";
  }

  void FindUnrecordedDevices(const RankAnalysis& rank) {
    const std::string state(EnvironmentValue(rank.environment, fact::kCuptiState));
    // What the collector writes where nothing is missing, or where the user wanted it so. A child
    // that was forked after CUDA's set-up cannot use the GPU.
    const bool is_fine = state.empty() || state == fact::kGpuRecording ||
                         state.starts_with(fact::kGpuOff) ||
                         state.find(fact::kGpuForked) != std::string::npos;
    if (!is_fine) {
      Add("gpu_not_recorded", "the program used CUDA, and its GPU work was not recorded: " + state,
          &rank)
          .undermines = rank.kernels + rank.copies == 0;
    }
    for (const QualityItem& item : rank.quality) {
      if (item.kind == "no_step_with_device_detail") {
        Add("gpu_not_recorded", "GPU work was recorded outside the counted steps only", &rank,
            {item})
            .undermines = true;
      }
    }
    // Rules that found nothing were not checked then, whatever others have found.
    if (!rank.device_doubt.empty()) Add("device_rows_missing", rank.device_doubt, &rank);
    if (!rank.launch_doubt.empty()) Add("launches_missing", rank.launch_doubt, &rank);
  }

  void FindUntrustedTimes(const RankAnalysis& rank) {
    std::vector<QualityItem> set_aside;
    int64_t count = 0;
    for (const QualityItem& item : rank.quality) {
      if (item.kind == "unknown_clock_rate") {
        Add("clock_unknown", "times are in ticks of unknown length, not in nanoseconds", &rank,
            {item})
            .undermines = true;
      }
      const bool counts = item.severity == QualitySeverity::kWarning &&
                          std::find(std::begin(kSetAsideKinds), std::end(kSetAsideKinds),
                                    item.kind) != std::end(kSetAsideKinds);
      if (!counts) continue;
      count += item.count;
      set_aside.push_back(item);
    }
    const auto events = static_cast<double>(rank.kernels + rank.copies + rank.api_calls +
                                            rank.ranges + static_cast<size_t>(count));
    if (static_cast<double>(count) <= kMostSetAside * events) return;
    Add("times_in_doubt",
        fmt::format("{:.0f} % of the events have no usable time or duration: {}",
                    100 * static_cast<double>(count) / events, Listed(set_aside)),
        &rank, set_aside)
        .undermines = true;
  }

  const JobAnalysis& job_;
  std::vector<Doubt> doubts_;
};

}  // namespace

std::vector<Doubt> DoubtsOf(const JobAnalysis& job) { return Doubts(job).Find(); }

}  // namespace trainprof
