#include "trace/recording/read/host_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "trace/base/utf8.h"
#include "trace/formats/io/memory_limit.h"
#include "trace/recording/read/host_series.h"
#include "trace/recording/read/stack_samples.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::recording {
namespace {

// Of one host file in one trace: what a timeline can show and Perfetto opens with ease.
constexpr int64_t kMostCounterRows = 500'000;

// Lowest rank first; processes without a rank come last.
bool IsOfLowerRank(const HostAudience& a, const HostAudience& b) {
  return static_cast<uint32_t>(a.rank) < static_cast<uint32_t>(b.rank);
}

// Counts the rows that the file would give an audience.
class RowCounter : public HostSink {
 public:
  RowCounter(HostOwnership& ownership, size_t audience)
      : ownership_(ownership), audience_(audience) {}

  void OnDefine(uint32_t id, const HostEntity& entity) override {
    if (ownership_.OwnerOf(entity) == audience_) kind_of_[id] = entity.kind;
  }
  void OnValues(uint32_t id, int64_t, std::span<const Value> values) override {
    const auto it = kind_of_.find(id);
    if (it != kind_of_.end()) rows_ += FamiliesAmong(it->second, values);
  }
  void OnEnd(uint32_t id) override { kind_of_.erase(id); }
  void OnFact(std::string_view, std::string_view) override {}

  int64_t rows() const { return rows_; }

 private:
  HostOwnership& ownership_;
  size_t audience_;
  std::unordered_map<uint32_t, HostEntityKind> kind_of_;
  int64_t rows_ = 0;
};

class CounterMaker : public HostSink {
 public:
  struct Setting {
    size_t audience;
    bool has_machine;  // the machine's counters and the facts are this audience's
    int64_t stride;
    int64_t base_ns;
  };
  CounterMaker(HostOwnership& ownership, const HostFile& file, Setting setting,
               TraceBuilder& builder)
      : ownership_(ownership), file_(file), setting_(setting), builder_(builder) {}

  void OnDefine(uint32_t id, const HostEntity& entity) override {
    const size_t owner = ownership_.OwnerOf(entity);
    const auto it = series_of_.find(id);
    if (it != series_of_.end()) return NameProcess(entity);  // it has become another program
    if (owner != setting_.audience) return;
    const TrackId track = TrackOf(entity);
    series_of_.emplace(
        id, EntitySeries(entity, file_.header, track, setting_.stride, setting_.base_ns, builder_));
  }
  void OnValues(uint32_t id, int64_t monotonic_ns, std::span<const Value> values) override {
    const auto it = series_of_.find(id);
    if (it != series_of_.end()) it->second.Add(monotonic_ns, values);
  }
  void OnEnd(uint32_t id) override {
    const auto it = series_of_.find(id);
    if (it == series_of_.end()) return;
    it->second.Finish(true);
    series_of_.erase(it);
  }
  void OnFact(std::string_view key, std::string_view text) override {
    if (!setting_.has_machine) return;
    std::string& value = facts_[std::string(key)];
    bool repaired = false;
    value = RepairUtf8(text, &repaired);
  }

  void Finish() {
    for (auto& [id, series] : series_of_) series.Finish(false);
    for (auto& [key, text] : facts_) builder_.trace().environment.emplace_back(key, text);
    NameDevices();
    CountNotSampled();
  }

 private:
  // A device that CUPTI does not name is what all GPUs of the machine are, as NVML names them.
  void NameDevices() {
    std::string_view name;
    for (const auto& [key, text] : facts_) {
      const bool of_gpu =
          key.starts_with(fact::kGpuPrefix) &&
          key.find_first_not_of("0123456789", sizeof fact::kGpuPrefix - 1) == std::string::npos;
      if (!of_gpu || text.starts_with(fact::kNotSampled)) continue;
      std::string_view named =
          std::string_view(text).substr(std::min(text.find(' ') + 1, text.size()));
      const size_t mode = named.rfind(std::string(", ") + fact::kMigMode);
      named = named.substr(0, mode);
      if (!name.empty() && named != name) return;
      name = named;
    }
    for (Device& device : builder_.trace().devices) {
      if (device.name == kEmptyString) device.name = builder_.Intern(name);
    }
  }

  // "GPU 0 power, GPU 0 clocks: error 15 (GPU is lost)": what the first one's cause took from us.
  void CountNotSampled() {
    std::string keys;
    std::string_view cause;
    int64_t count = 0;
    for (const auto& [key, text] : facts_) {
      if (!text.starts_with(fact::kNotSampled)) continue;
      const std::string_view why = std::string_view(text).substr(sizeof fact::kNotSampled - 1);
      if (count++ == 0) cause = why;
      if (why == cause) keys += (keys.empty() ? "" : ", ") + key;
    }
    builder_.quality().Count("gpu_not_sampled", QualitySeverity::kInfo, count,
                             fmt::format("{}: {}", keys, cause));
  }

  TrackId TrackOf(const HostEntity& entity) {
    if (entity.kind == HostEntityKind::kProcess) {
      NameProcess(entity);
      return builder_.FindOrAddThread(builder_.FindOrAddProcess(entity.number), entity.number);
    }
    const int64_t pid = file_.header.pid;
    const ProcessId process = builder_.FindOrAddProcess(pid);
    bool repaired = false;
    builder_.process(process).name = builder_.Intern("host " + RepairUtf8(file_.host(), &repaired));
    const TrackId track = builder_.FindOrAddThread(process, pid);
    builder_.track(track).name = builder_.Intern("trainprof host sampler");
    return track;
  }

  // Where the recording does not name it better.
  void NameProcess(const HostEntity& entity) {
    const ProcessId process = builder_.FindOrAddProcess(entity.number);
    Process& named = builder_.process(process);
    const bool ours = named_here_.contains(entity.number);
    if (!ours && named.name != kEmptyString) return;
    bool repaired = false;
    named.name = builder_.Intern(RepairUtf8(entity.text, &repaired));
    named_here_[entity.number] = true;
  }

  HostOwnership& ownership_;
  const HostFile& file_;
  Setting setting_;
  TraceBuilder& builder_;
  std::map<uint32_t, EntitySeries> series_of_;
  std::map<int64_t, bool> named_here_;
  std::map<std::string, std::string> facts_;
};

}  // namespace

HostSamples HostSamples::Alone(const std::filesystem::path& run_dir) {
  HostSamples samples(run_dir, {HostAudience{}});
  if (samples.first() != nullptr) samples.audiences_[0].boot_id = samples.first()->boot_id();
  return samples;
}

HostSamples::HostSamples(const std::filesystem::path& run_dir, std::vector<HostAudience> audiences)
    : audiences_(std::move(audiences)) {
  for (HostAudience& audience : audiences_) {
    // Collectors store the kernel's line with its end.
    if (audience.boot_id.ends_with('\n')) audience.boot_id.pop_back();
  }
  files_ = ReadAll(HostFilesIn(run_dir));
  stack_files_ = ReadAll(HostFilesIn(run_dir, kStacksPrefix));
}

std::vector<HostFile> HostSamples::ReadAll(const std::vector<std::filesystem::path>& paths) {
  std::vector<HostFile> files;
  for (const std::filesystem::path& path : paths) {
    CheckMemory(ReadableMemoryBytes());
    Result<HostFile> file = ReadHostFile(path);
    if (file.ok()) {
      files.push_back(std::move(file).value());
    } else {
      errors_.push_back(file.error());
    }
  }
  return files;
}

size_t HostSamples::AudienceOf(const HostFile& file) const {
  size_t lowest = kNobody;
  for (size_t i = 0; i < audiences_.size(); ++i) {
    if (audiences_[i].boot_id != file.boot_id()) continue;
    if (lowest == kNobody || IsOfLowerRank(audiences_[i], audiences_[lowest])) lowest = i;
  }
  return lowest;
}

void HostSamples::AddCores(size_t audience, TraceBuilder& builder) const {
  const std::string& host = audiences_[audience].boot_id;
  for (const HostFile& file : files_) {
    if (file.boot_id() != host || file.header.cores == 0) continue;
    const auto ranks = std::count_if(
        audiences_.begin(), audiences_.end(),
        [&](const HostAudience& other) { return other.boot_id == host && other.rank >= 0; });
    auto& environment = builder.trace().environment;
    environment.emplace_back(fact::kCores, std::to_string(file.header.cores));
    if (ranks > 0) environment.emplace_back(fact::kRanksOnHost, std::to_string(ranks));
    return;
  }
}

void HostSamples::AddTo(size_t audience, int64_t base_monotonic_ns, TraceBuilder& builder) const {
  Quality& quality = builder.quality();
  if (audience == 0) {
    for (const std::string& error : errors_) {
      quality.Count("unreadable_host_file", QualitySeverity::kDataLoss, 1, error);
    }
  }
  AddCores(audience, builder);
  for (const HostFile& file : files_) {
    const size_t machine = AudienceOf(file);
    if (machine == kNobody) continue;
    HostOwnership counted(audiences_, file, machine);
    RowCounter counter(counted, audience);
    const int64_t damaged = DecodeHostFrames(file.frames, counter) + (file.whole ? 0 : 1);
    const int64_t stride = 1 + counter.rows() / kMostCounterRows;
    HostOwnership ownership(audiences_, file, machine);
    const CounterMaker::Setting setting{audience, machine == audience, stride, base_monotonic_ns};
    CounterMaker maker(ownership, file, setting, builder);
    DecodeHostFrames(file.frames, maker);
    maker.Finish();
    if (stride > 1) {
      quality.Count("thinned_host_samples", QualitySeverity::kInfo, 1,
                    "one in " + std::to_string(stride) + " samples of the host is shown");
    }
    if (machine == audience) {
      quality.Count("damaged_host_samples", QualitySeverity::kDataLoss, damaged,
                    file.path.filename().string() + ": samples around the damage are missing");
    }
  }
  for (const HostFile& file : stack_files_) {
    const size_t machine = AudienceOf(file);
    if (machine == kNobody) continue;
    HostOwnership ownership(audiences_, file, machine);
    AddStackSamples(file, ownership, audience, machine == audience, base_monotonic_ns, builder);
  }
}

}  // namespace trainprof::recording
