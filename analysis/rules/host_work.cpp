// the device stands idle while the host works on something else: Python, garbage collection, files,
// what the user's own range names; or while another thread has its core  =>  move it off the loop
//
// Of a checkpoint the copies to the host belong to it: that they are waited for, and what they take of the device.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/host/program.h"
#include "analysis/rule.h"
#include "analysis/saves.h"
#include "analysis/words.h"
#include "trace/base/cancel.h"

namespace trainprof::rules {
namespace {

enum class Kind : uint8_t {
  kGarbage,
  kIo,
  kPreempted,
  kNamed,
  kOperator,
  kPython,
  kSampled,
  kUnnamed
};

struct Work {
  std::vector<Row> rows;          // of ranges, each once
  std::vector<ThreadSpan> spans;  // what no range holds alone
  std::vector<uint32_t> idle;     // rows of the device's idle time
  std::map<std::string, Duration> names;
  std::vector<Site> where;
  int64_t samples = 0;  // of kSampled
  Duration total;
};

// Fewer stacks than these say nothing of where the time went.
constexpr int64_t kFewSamples = 10;
constexpr double kBySamples = 0.8;  // confidence

bool MayBeHostWork(DeviceClass c) {
  return c == DeviceClass::kIdlePython || c == DeviceClass::kIdleIo ||
         c == DeviceClass::kIdleHostWork || c == DeviceClass::kIdlePreempted ||
         c == DeviceClass::kIdleUnknown;
}

// Whether the thread is in a call of the runtime at `at`.
bool IsInCall(const ApiTable& api, TrackId thread, TraceTime at) {
  const auto [first, last] = api.rows_of(thread);
  const auto after = std::upper_bound(api.begin.begin() + first, api.begin.begin() + last, at);
  const auto row = static_cast<uint32_t>(after - api.begin.begin());
  // Calls nest a few deep: the driver's in the runtime's.
  constexpr uint32_t kDeepest = 4;
  for (uint32_t i = row; i > first && row - i < kDeepest; --i) {
    if (api.end(i - 1) > at) return true;
  }
  return false;
}

// What a thread did while a device stood idle, by the ranges that hold that time.
class Searcher {
 public:
  explicit Searcher(const RankModel& model) : model_(model), trace_(model.trace) {}

  std::map<Kind, Work> In(const DeviceAccount& device) const {
    std::map<Kind, Work> found;
    const TrackId thread = model_.device_steps.thread;
    if (thread == kNoTrack) return found;
    std::vector<Interval> unnamed;
    for (uint32_t i = 0; i < device.idle.size(); ++i) {
      CancelPoint(i);
      const auto& [gap, why] = device.idle[i];
      if (!MayBeHostWork(why) || !model_.InDeviceWindow(gap)) continue;
      TraceTime at = gap.begin;
      while (at < gap.end) {
        const Row row = RangeAt(gap, at, thread);
        const Interval part{at, EndOfPart(gap, at, row, thread)};
        if (!Take(part, row, why, thread, i, found)) unnamed.push_back(part);
        at = part.end;
      }
    }
    TakeSampled(IntervalSet::Union(std::move(unnamed)), thread, found);
    for (auto& [kind, work] : found) {
      if (kind != Kind::kOperator) AddOthersOfTheName(thread, work);
      std::sort(work.rows.begin(), work.rows.end());
      work.rows.erase(std::unique(work.rows.begin(), work.rows.end()), work.rows.end());
    }
    return found;
  }

 private:
  // Ranges that hold the whole step say nothing of the gap.
  bool IsWithinStep(Row range) const {
    if (trace_.Facts(trace_.ranges.name[Index(range)]).is_step != 0) return false;
    const Step* const step = model_.device_steps.At(trace_.ranges.begin[Index(range)]);
    const Interval when = trace_.ranges.interval(range);
    return step != nullptr && when.Length() < step->span.Length();
  }

  // The innermost range of the step that holds `at`, or what lies around it as far as it began and
  // ended while the device stood idle.
  Row RangeAt(const Interval& gap, TraceTime at, TrackId thread) const {
    const RangeTable& ranges = trace_.ranges;
    Row row = InnermostRange(ranges, thread, at);
    if (row == kNoRow || !IsWithinStep(row)) return kNoRow;
    for (Row around = ranges.parent[Index(row)]; around != kNoRow;
         around = ranges.parent[Index(around)]) {
      const Interval when = ranges.interval(around);
      const bool within = when.begin + kRounding >= gap.begin && when.end <= gap.end + kRounding;
      if (!within || !IsWithinStep(around)) break;
      row = around;
    }
    return row;
  }

  // Whether its thread called the runtime within, or may have: calls are missing.
  bool HoldsCalls(Row range) const {
    const ApiTable& api = trace_.api;
    const Interval when = trace_.ranges.interval(range);
    const auto [first, last] = api.rows_of(trace_.ranges.track[Index(range)]);
    if (first == last || !model_.launch_doubt.empty()) return true;
    const auto next =
        std::lower_bound(api.begin.begin() + first, api.begin.begin() + last, when.begin);
    return next != api.begin.begin() + last && *next < when.end;
  }

  // Until when the same is to be said as of `at`: to the end of the range, or to the next one within it.
  TraceTime EndOfPart(const Interval& gap, TraceTime at, Row row, TrackId thread) const {
    const RangeTable& ranges = trace_.ranges;
    TraceTime end = gap.end;
    if (row != kNoRow) end = std::min(end, ranges.end(Index(row)));
    if (row != kNoRow && ranges.end(Index(row)) <= gap.end &&
        ranges.begin[Index(row)] + kRounding >= gap.begin) {
      return end;
    }
    const auto [first, last] = ranges.rows_of(thread);
    const auto next =
        std::upper_bound(ranges.begin.begin() + first, ranges.begin.begin() + last, at);
    return next == ranges.begin.begin() + last ? end : std::min(end, *next);
  }

  Kind KindOf(Row range, DeviceClass why) const {
    for (Row row = range; row != kNoRow; row = trace_.ranges.parent[Index(row)]) {
      const NameFacts facts = trace_.Facts(trace_.ranges.name[Index(row)]);
      if (facts.is_garbage_collection != 0) return Kind::kGarbage;
      if (facts.is_io != 0) return Kind::kIo;
    }
    if (why == DeviceClass::kIdleIo) return Kind::kIo;
    switch (trace_.ranges.kind[Index(range)]) {
      case RangeKind::kUserAnnotation:
        return Kind::kNamed;
      case RangeKind::kPythonFunction:
        return Kind::kPython;
      default:
        return Kind::kOperator;
    }
  }

  // What moves off the loop does so in all steps, whether or not the device was idle meanwhile: the thread's other
  // ranges of these names, of such as do nothing but this work.
  void AddOthersOfTheName(TrackId thread, Work& work) const {
    const RangeTable& ranges = trace_.ranges;
    const auto is_all_work = [&](Row row) {
      return trace_.Facts(ranges.name[Index(row)]).is_io != 0 || !HoldsCalls(row);
    };
    std::set<StringId> names;
    for (const Row row : work.rows) {
      if (is_all_work(row)) names.insert(ranges.name[Index(row)]);
    }
    if (names.empty()) return;
    const auto [first, last] = ranges.rows_of(thread);
    for (uint32_t i = first; i < last; ++i) {
      CancelPoint(i);
      const Row row{i};
      if (!names.contains(ranges.name[i]) || !model_.InWindow(ranges.interval(row))) continue;
      if (IsWithinStep(row) && is_all_work(row)) work.rows.push_back(row);
    }
  }

  // The same stretch on the host, which may have begun while the device was busy.
  Interval AroundOf(const Interval& part, TrackId thread) const {
    const ApiTable& api = trace_.api;
    const auto [first, last] = api.rows_of(thread);
    const auto after = static_cast<uint32_t>(
        std::upper_bound(api.begin.begin() + first, api.begin.begin() + last, part.begin) -
        api.begin.begin());
    Interval around = part;
    if (after > first) around.begin = std::min(part.begin, api.end(after - 1));
    if (after < last) around.end = std::max(part.end, api.begin[after]);
    const Row range = InnermostRange(trace_.ranges, thread, part.begin);
    if (range != kNoRow && IsWithinStep(range)) {
      around = {std::max(around.begin, std::min(part.begin, trace_.ranges.begin[Index(range)])),
                std::min(around.end, std::max(part.end, trace_.ranges.end(Index(range))))};
    }
    return around;
  }

  // False where nothing tells what this part of an idle gap went to.
  bool Take(const Interval& part, Row row, DeviceClass why, TrackId thread, uint32_t idle,
            std::map<Kind, Work>& found) const {
    const TraceTime middle = part.begin + Duration{part.Length().ns / 2};
    const bool unknown = why == DeviceClass::kIdleUnknown;
    // Of a range that does much else, a forward pass, say, only the place is named.
    const bool mostly =
        row != kNoRow &&
        (2 * part.Length().ns >= trace_.ranges.interval(row).Length().ns || !HoldsCalls(row));
    // Nor does a thread that calls nothing tell anything where calls are missing.
    if (unknown &&
        (!mostly || !model_.launch_doubt.empty() || IsInCall(trace_.api, thread, middle))) {
      return false;
    }
    const bool is_range = row != kNoRow && mostly;
    const Kind kind = why == DeviceClass::kIdlePreempted ? Kind::kPreempted
                      : is_range                         ? KindOf(row, why)
                      : why == DeviceClass::kIdleIo      ? Kind::kIo
                      : why == DeviceClass::kIdlePython  ? Kind::kPython
                                                         : Kind::kUnnamed;
    Work& work = found[kind];
    const Duration length = model_.device_steps.device_window.TotalWithin(part);
    work.total += length;
    if (work.idle.empty() || work.idle.back() != idle) work.idle.push_back(idle);
    AddSite(work.where, is_range ? model_.sites.FindRange(row) : model_.sites.Find(thread, middle));
    if (is_range) {
      work.rows.push_back(row);
    } else {
      work.spans.push_back({thread, AroundOf(part, thread)});
    }
    if (row == kNoRow) return true;
    work.names[std::string(WithoutAddress(trace_.Text(trace_.ranges.name[Index(row)])))] += length;
    return true;
  }

  // Where nothing names the time, stacks that were read meanwhile do.
  void TakeSampled(const IntervalSet& unnamed, TrackId thread, std::map<Kind, Work>& found) const {
    const SampleTable& samples = trace_.samples;
    const auto [first, last] = samples.rows_of(thread);
    Work work;
    for (uint32_t i = first; i < last; ++i) {
      CancelPoint(i);
      if (samples.state[i] == ThreadState::kWaiting) continue;
      if (unnamed.TotalWithin({samples.begin[i], samples.begin[i] + Duration{1}}).ns == 0) continue;
      ++work.samples;
      trace_.stacks.ForEachFrame(samples.stack[i], [&](const CallFrame& frame) {
        if (!frame.is_user || !frame.HasLine()) return true;
        AddSite(work.where, {std::string(trace_.Text(frame.file)), frame.line,
                             std::string(trace_.Text(frame.function)), "", 1});
        return false;
      });
    }
    if (work.samples < kFewSamples || work.where.empty()) return;
    work.total = unnamed.TotalWithin(model_.device_steps.device_window);
    found[Kind::kSampled] = std::move(work);
  }

  const RankModel& model_;
  const Trace& trace_;
};

std::string NamesText(const RankModel& model, const Work& work) {
  std::vector<std::pair<std::string, Duration>> most(work.names.begin(), work.names.end());
  KeepWorst(most, [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [name, total] : most) {
    text += fmt::format("{}\"{}\" {:.2f}", text.empty() ? "" : ", ", name, model.PerStepMs(total));
  }
  return text.empty() ? "" : ": " + text;
}

std::string_view WordOf(Kind kind) {
  switch (kind) {
    case Kind::kGarbage:
      return "Garbage collection";
    case Kind::kIo:
      return "Saving or logging";
    case Kind::kPreempted:
      return "Preempted host";
    case Kind::kOperator:
      return "Operators on the CPU";
    case Kind::kPython:
      return "Python";
    case Kind::kNamed:
    case Kind::kSampled:
    case Kind::kUnnamed:
      break;
  }
  return "Host work";
}

std::string Advice(const RankModel& model, Kind kind) {
  const Language language = LanguageOf(model.trace);
  switch (kind) {
    case Kind::kGarbage:
      return "Python's collector runs when enough objects have been made. gc.freeze() behind the set-up "
             "takes what lives on out of its way; gc.disable() with gc.collect(1) every N steps chooses "
             "the moment (in all ranks the same step). Without any collection reference cycles keep "
             "memory.";
    case Kind::kIo:
      return fmt::format(
          "Write while the GPU works: copy to pinned memory, and let a thread or "
          "process write from there ({}); log every N steps, from values that were copied "
          "before.",
          InItsLanguage(language, "torch.distributed.checkpoint.async_save",
                        "a std::jthread that writes a copy"));
    case Kind::kPreempted: {
      const int64_t cores = CoresOfRank(model.trace);
      return fmt::format(
          "Other threads took the core of the one that trains{}: fewer loader workers, fewer "
          "threads in each ({}), and no other job on the cores of this rank.",
          cores == 0 ? "" : fmt::format(" (this rank has {})", Counted(cores, "core", "cores")),
          InItsLanguage(language, "OMP_NUM_THREADS, torch.set_num_threads",
                        "OMP_NUM_THREADS, at::set_num_threads"));
    }
    case Kind::kOperator:
      return "These operators compute on the CPU between launches: move their tensors to the GPU once, and "
             "compute there, or do it in the loader's workers.";
    case Kind::kNamed:
    case Kind::kPython:
    case Kind::kSampled:
    case Kind::kUnnamed:
      break;
  }
  return fmt::format(
      "Do it where nothing waits for it: in the loader's workers, in {}, on the GPU, or "
      "once every N steps.",
      InItsLanguage(language, "a process of its own (a Python thread shares the GIL)",
                    "a thread of its own"));
}

std::string FixOf(const RankModel& model, Kind kind) {
  if (kind != Kind::kGarbage || LanguageOf(model.trace) == Language::kCpp) return {};
  return "gc.collect(); gc.freeze(); gc.disable()   # behind the set-up\n"
         "# in the loop:\nif step % 1000 == 0:\n    gc.collect(1)";
}

Diagnosis FindingOf(const RankModel& model, const DeviceAccount& device, Kind kind, Work work) {
  Finding finding;
  finding.cost = work.total;
  finding.severity = SeverityOfLoss(model.ShareOfWindow(work.total));
  finding.count =
      static_cast<int64_t>(std::max(work.idle.size(), static_cast<size_t>(work.samples)));
  finding.title = fmt::format("{}: the GPU stands idle for {:.2f} {} meanwhile{}", WordOf(kind),
                              model.PerStepMs(work.total), model.Unit(), NamesText(model, work));
  finding.where = std::move(work.where);
  if (kind == Kind::kSampled) {
    finding.confidence = kBySamples;
    finding.confidence_reasons.push_back(
        fmt::format("what the host did is known from {} samples of its stack alone", work.samples));
  }
  KeepWorst(work.idle, [&](uint32_t a, uint32_t b) {
    return device.idle[a].interval.Length() > device.idle[b].interval.Length();
  });
  const int64_t id = model.trace.devices[Index(device.device)].id;
  for (const uint32_t row : work.idle) {
    const Interval gap = device.idle[row].interval;
    finding.evidence.push_back(
        {fmt::format("GPU {} idle for {:.2f} ms", id, gap.Length().ToMilliseconds()), gap,
         Table::kIdle, Row{row}, device.device});
  }
  finding.advice = Advice(model, kind);
  finding.fix = FixOf(model, kind);
  finding.verify =
      "Record again: the GPU works while the host does this, or the host does it no more.";
  return {std::move(finding),
          {Edit::kDropHostWork, std::move(work.rows), kNoDevice, false, {}, std::move(work.spans)}};
}

// What is copied to be saved.
void AddCopies(const RankModel& model, const DeviceAccount& device,
               const std::vector<CopyCall>& copies, Diagnosis& of) {
  if (copies.empty()) return;
  const DeviceOpTable& ops = model.trace.device_ops;
  std::vector<Interval> times;
  int64_t bytes = 0;
  bool waits = false;
  for (const CopyCall& copy : copies) {
    of.change.ops.push_back(copy.op);
    bytes += ops.bytes[Index(copy.op)];
    if (model.trace.tracks[Index(ops.track[Index(copy.op)])].device == device.device) {
      times.push_back(ops.interval(copy.op));
    }
    if (!copy.Waits()) continue;
    waits = true;
    of.change.calls.push_back(copy.call);
    if (copy.sync != kNoRow) of.change.calls.push_back(copy.sync);
    const Site site = model.sites.FindCall(copy.waiting);
    if (site.file.empty()) continue;  // it is the range's, which is there
    AddSite(of.finding.where, site);
  }
  const Duration exposed = IntervalSet::Union(std::move(times))
                               .IntersectWith(device.exposed_copy)
                               .IntersectWith(model.device_steps.device_window)
                               .Total();
  Finding& finding = of.finding;
  finding.cost += exposed;
  finding.severity = SeverityOfLoss(model.ShareOfWindow(finding.cost));
  finding.title +=
      fmt::format("; {} of {:.1f} MB to the host{} run beside no kernel for {:.2f}",
                  Counted(static_cast<int64_t>(copies.size()), "copy", "copies"),
                  static_cast<double>(bytes) / static_cast<double>(copies.size()) * 1e-6,
                  waits ? " that it waits for" : "", model.PerStepMs(exposed));
}

RuleOutcome Check(const RankModel& model) {
  if (model.devices.empty()) return NoDevices(model);
  if (model.device_steps.count() == 0) {
    return Skipped{"no steps were found: what the host does at start-up looks the same"};
  }
  const DeviceAccount& device = *DeviceOfHostWork(model);
  std::vector<Diagnosis> findings;
  for (auto& [kind, work] : Searcher(model).In(device)) {
    if (model.ShareOfWindow(work.total) < kLeastShare) continue;
    findings.push_back(FindingOf(model, device, kind, std::move(work)));
    if (kind == Kind::kIo) AddCopies(model, device, model.saved_copies, findings.back());
  }
  return findings;
}

constexpr ExplainedClass kExplains[] = {
    {DeviceClass::kIdlePython},        {DeviceClass::kIdleIo},
    {DeviceClass::kIdleHostWork},      {DeviceClass::kIdlePreempted},
    {DeviceClass::kIdleUnknown, true}, {DeviceClass::kExposedCopy, true}};

}  // namespace

extern const Rule host_work = {"TP203", "the host does something else meanwhile", Check, kExplains};

}  // namespace trainprof::rules
