#include "analysis/job/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/busy_words.h"
#include "analysis/job/coverage.h"
#include "analysis/words.h"

namespace trainprof {
namespace {

// Of the devices that train.
const DeviceReport* WorstDevice(const RankAnalysis& rank) {
  const DeviceReport* worst = nullptr;
  for (const DeviceReport& device : rank.devices) {
    if (!device.stray && (worst == nullptr || device.busy < worst->busy)) worst = &device;
  }
  return worst;
}

std::string PartsText(const RankAnalysis& rank, const DeviceReport& device) {
  if (device.account.size() != kDeviceClasses) return {};
  const auto share = [&](DeviceClass c) {
    return rank.DeviceShare(device.account[static_cast<size_t>(c)].total);
  };
  return BusyParts(share(DeviceClass::kCompute), share(DeviceClass::kExposedCopy),
                   share(DeviceClass::kExposedCommunication));
}

std::string BusyText(const RankAnalysis& rank, const DeviceReport& device) {
  const double low = 100 * rank.DeviceShare(device.busy);
  const double high = 100 * rank.DeviceShare(device.busy_high);
  constexpr double kVisible = 0.05;  // percentage points that a figure with one decimal shows
  std::string text =
      high - low < kVisible
          ? fmt::format("GPU busy {:.1f} %{}", low, PartsText(rank, device))
          : fmt::format("GPU busy {:.1f} to {:.1f} %{} (device work is missing from the trace)",
                        low, high, PartsText(rank, device));
  const auto training = std::count_if(rank.devices.begin(), rank.devices.end(),
                                      [](const DeviceReport& d) { return !d.stray; });
  if (training > 1) text += fmt::format(" (GPU {}, the least of {})", device.id, training);
  return text;
}

// The share of the window from which a part of the host's unnamed time is the first thing to say.
constexpr double kWorthOpening = 0.10;

// What most of the host's unnamed time went to, where that is the user's own range or function: an
// operator or a module does what the step is for.
const OtherItem* LargestOwn(const RankAnalysis& rank) {
  for (const OtherItem& item : rank.host_other.items) {
    if (item.is_users && rank.Share(item.total) >= kWorthOpening) return &item;
  }
  return nullptr;
}

// ", mostly train.py:25 Images.__getitem__, waiting": where most of an input wait goes, as far as
// samples tell. Where the loop waits for workers or another thread, what they did then.
std::string MostlyText(const RankAnalysis& rank, const AccountLine& loss) {
  constexpr int64_t kFewSamples = 10;
  if (loss.name != "input_wait" && loss.name != "idle_input_wait") return {};
  for (const PhaseLines& phase : rank.host_lines) {
    if (phase.phase != HostClass::kInputWait || (phase.sampled && phase.count < kFewSamples))
      continue;
    const std::vector<LineTime>& lines = phase.producers.empty() ? phase.lines : phase.producers;
    if (lines.empty() || lines[0].file.empty() || lines[0].total.ns * 2 < phase.total.ns) break;
    return ", mostly " + Title(lines[0]);
  }
  return {};
}

// A wait that no class of the account shows: it is in all of them.
std::string GilText(const RankAnalysis& rank) {
  constexpr double kWorthNaming = 0.10;
  for (const HostFact& fact : rank.host_facts) {
    const double share = fact.value / std::max(rank.PerStepMs(rank.window), 1e-9);
    if (fact.id != "gil_wait" || share < kWorthNaming) continue;
    return fmt::format("; of all phases {}{} ({:.0f} %) were waits for Python's GIL",
                       TimeText(fact.value), rank.steps.count() > 0 ? "/step" : "", 100 * share);
  }
  return {};
}

// "; biggest loss: ...". `of`: of what the share is, where the sentence begins with another figure.
std::string LossText(const RankAnalysis& rank, const AccountLine& loss, double ms, double share,
                     std::string_view of) {
  // A small loss that no rule finds worth a word is none that anybody could act on.
  const double worth_naming = rank.findings.empty() ? 0.05 : 0.01;
  if (share < worth_naming) {
    return GilText(rank).empty() ? fmt::format("; no loss of {:.0f} % or more", 100 * worth_naming)
                                 : "";
  }
  const std::string meaning = loss.meaning.empty() ? "" : fmt::format(" ({})", loss.meaning);
  const bool has_steps = rank.steps.count() > 0;
  const bool is_devices = loss.name.starts_with("idle_") || loss.name.starts_with("exposed_");
  const bool by_samples = rank.phases_are_sampled && !is_devices;
  // What is missing may be what would explain it: the figure stands, a judgement does not.
  const std::string_view open = WhyNotJudged(rank, loss.name);
  return fmt::format("; biggest loss{}: {}{}{}, {}{} ({:.0f} %{}){}{}{}",
                     open.empty() ? "" : " on record",
                     loss.name.starts_with("idle_") ? "GPU idle, " : "", loss.title, meaning,
                     TimeText(ms), has_steps ? "/step" : "", 100 * share, of,
                     MostlyText(rank, loss), by_samples ? ", by samples of stacks alone" : "",
                     open.empty() ? "" : fmt::format("; not judged, since {}", open));
}

struct StepTexts {
  std::string step;           // "median step 161.3 ms, mean 155.8 ms"
  std::string of_all;         // " of the mean", of what shares over all steps are
  std::string of_gpu_detail;  // the same of the steps that show the devices
};

// What the steps are of, where it is not what one expects.
std::string IterationsOf(const RankAnalysis& rank) {
  return rank.workload == Workload::kInference ? "inference: " : "";
}

// Accounts are over the steps' mean, which counts the time between two steps' ranges too.
StepTexts StepText(const RankAnalysis& rank) {
  if (rank.steps.count() == 0) {
    return {IterationsOf(rank) + "no steps found in " + TimeText(rank.window.ToMilliseconds()), "",
            ""};
  }
  const std::string median = TimeText(rank.steps.Median().ToMilliseconds());
  const std::string mean = TimeText(rank.steps.MeanMilliseconds());
  StepTexts texts{IterationsOf(rank) + "median step " + median, "", ""};
  if (mean != median) {
    texts.step += ", mean " + mean;
    texts.of_all = " of the mean";
  }
  if (rank.steps.source == StepSource::kInferred) {
    texts.step += " (steps inferred from the repeating kernels)";
  }
  const std::string detail = TimeText(rank.DevicePerStepMs(rank.device_window));
  const bool all = rank.device_steps.count() == rank.steps.count();
  texts.of_gpu_detail = all || detail == mean
                            ? texts.of_all
                            : fmt::format(" of the {} of steps with GPU detail", detail);
  return texts;
}

// Without a device: the waits that have a name, and the largest part of what has none.
std::string HostText(const RankAnalysis& rank, const AccountLine* wait, const StepTexts& texts) {
  const bool has_steps = rank.steps.count() > 0;
  constexpr double kWorthNamingToo = 0.05;
  const std::string loss = wait == nullptr ? ""
                                           : LossText(rank, *wait, rank.PerStepMs(wait->total),
                                                      rank.Share(wait->total), texts.of_all);
  const OtherItem* const own = LargestOwn(rank);
  if (own != nullptr && (wait == nullptr || wait->total < own->total)) {
    const bool both = wait != nullptr && rank.Share(wait->total) >= kWorthNamingToo;
    return fmt::format(
        "; largest part of the host's time outside known phases: {} \"{}\", {}{} ({:.0f} %{}){}",
        Name(own->kind), own->name, TimeText(rank.PerStepMs(own->total)), has_steps ? "/step" : "",
        100 * rank.Share(own->total), texts.of_all, both ? loss : "");
  }
  if (wait != nullptr) return loss;
  if (rank.has_host_phases) return "";
  return rank.host_other.HasNames() ? "; no range names a phase of the loop"
                                    : "; nothing in the trace names what the host was doing";
}

}  // namespace

std::string Verdict(const RankAnalysis& rank) {
  const StepTexts texts = StepText(rank);
  const DeviceReport* const device = WorstDevice(rank);
  const std::vector<AccountLine>& account = device ? device->account : rank.host_account;
  const AccountLine* biggest = nullptr;
  for (const AccountLine& line : account) {
    const bool counts = device ? IsLoss(line)
                               : line.name == Name(HostClass::kInputWait) ||
                                     line.name == Name(HostClass::kCopy) ||
                                     line.name == Name(HostClass::kRankWait);
    if (counts && line.total.ns > 0 && (!biggest || line.total > biggest->total)) biggest = &line;
  }
  if (device == nullptr) return texts.step + HostText(rank, biggest, texts) + GilText(rank);
  std::string text = texts.step + "; " + BusyText(rank, *device);
  if (biggest != nullptr) {
    text += LossText(rank, *biggest, rank.DevicePerStepMs(biggest->total),
                     rank.DeviceShare(biggest->total), texts.of_gpu_detail);
  }
  // All that was said of the device is of the steps with detail.
  if (rank.detail_check.is_unlike) text += "; but " + UnlikeText(rank.detail_check);
  return text + GilText(rank);
}

namespace {

// "other ranks wait for it, up to 9.2 ms/step, in 38 of 40 steps".
std::string WaitsText(const JobAnalysis& job) {
  const JobWaits& waits = job.waits;
  const uint32_t late = waits.late.front();
  double longest_ms = 0;
  for (size_t rank = 0; rank < job.ranks.size(); ++rank) {
    const RankWaits& own = waits.ranks[rank];
    const bool is_for_it = waits.changes || waits.late.size() > 1 || own.awaited == late;
    const Duration wait = waits.changes || waits.late.size() > 1 ? own.wait : own.awaited_wait;
    if (is_for_it) longest_ms = std::max(longest_ms, job.ranks[rank].PerStepMs(wait));
  }
  const bool has_steps = job.ranks[late].steps.count() > 0;
  const std::string up_to =
      fmt::format("up to {}{}", TimeText(longest_ms), has_steps ? "/step" : "");
  const int64_t late_steps = waits.ranks[late].late_steps;
  if (waits.changes) {
    return fmt::format(
        "ranks wait for each other, {}, and who comes late changes: rank {} most often, in {} of "
        "{} steps",
        up_to, job.ranks[late].rank, late_steps, waits.steps);
  }
  std::string text =
      waits.late.size() > 1
          ? fmt::format("{} ranks come late together, others wait for them, {}", waits.late.size(),
                        up_to)
          : fmt::format("{} for it, {}",
                        job.ranks.size() == 2 ? "the other rank waits" : "other ranks wait", up_to);
  if (has_steps && waits.late.size() == 1) {
    text += fmt::format(", in {} of {}", late_steps, Counted(waits.steps, "step", "steps"));
  }
  const std::string cause = CauseText(job.late_cause);
  return cause.empty() ? text : text + ": " + cause;
}

}  // namespace

std::string JobVerdict(const JobAnalysis& job) {
  const RankAnalysis& slowest = SlowestRank(job);
  const std::string text = Verdict(slowest);
  if (!job.waits.late.empty()) return text + "; " + WaitsText(job);
  if (job.waits.Any()) return text;
  std::vector<const RankAnalysis*> ranks;
  for (const RankAnalysis& rank : job.ranks) ranks.push_back(&rank);
  std::optional<Duration> longest;
  for (const auto& slack : SlackOf(ranks)) longest = std::max(longest, slack);
  if (!longest ||
      longest->ToMilliseconds() < kWaitWorthSaying * slowest.PerStepMs(slowest.window)) {
    return text;
  }
  return text + fmt::format("; {} for it, up to {}/step",
                            job.ranks.size() == 2 ? "the other rank waits" : "other ranks wait",
                            TimeText(longest->ToMilliseconds()));
}

}  // namespace trainprof
