#include "analysis/job/fingerprint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>

#include "analysis/kernel_title.h"
#include "trace/recording/wire/facts.h"
#include "trace/tables/environment.h"

namespace trainprof {
namespace {

// The values of all ranks: one where they agree.
std::string OfRanks(const JobAnalysis& job,
                    const std::function<std::string(const RankAnalysis&)>& of) {
  std::vector<std::string> values;
  for (const RankAnalysis& rank : job.ranks) {
    std::string value = of(rank);
    if (!value.empty()) values.push_back(std::move(value));
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : "; ") + value;
  return text;
}

// Of the names under which recordings and other tools tell it, the first that is there.
std::string Told(const JobAnalysis& job, std::initializer_list<std::string_view> names) {
  return OfRanks(job, [&](const RankAnalysis& rank) {
    for (const std::string_view name : names) {
      const std::string_view value = EnvironmentValue(rank.environment, name);
      if (!value.empty()) return std::string(value);
    }
    return std::string();
  });
}

// "2 x Tesla V100-SXM2-32GB 7.0": those that train.
std::string GpusOf(const RankAnalysis& rank) {
  std::map<std::string, int> counts;
  for (const DeviceReport& device : rank.devices) {
    if (device.stray) continue;
    std::string name = device.name.empty() ? "GPU" : device.name;
    if (!device.compute_capability.empty()) name += " " + device.compute_capability;
    if (device.is_mig_slice) name += " (slice)";
    ++counts[name];
  }
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text.empty() ? "none" : text;
}

std::string OptionsOf(const RankAnalysis& rank) {
  if (rank.source != SourceKind::kRecording) return {};
  const std::string options(EnvironmentValue(rank.environment, fact::kRecordingOptions));
  return options.empty() ? "the defaults" : options;
}

std::string WithoutNumbers(std::string_view text) {
  std::string normal;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) {
      normal += c;
    } else if (normal.empty() || normal.back() != '#') {
      normal += '#';
    }
  }
  return normal;
}

}  // namespace

std::vector<EnvironmentFact> EnvironmentOf(const JobAnalysis& job) {
  const auto number = [](int64_t value) { return std::to_string(value); };
  // Without a GPU it is what trains.
  const bool no_gpu = std::all_of(job.ranks.begin(), job.ranks.end(),
                                  [](const RankAnalysis& rank) { return rank.devices.empty(); });
  return {
      {"source", "kind of input", OfRanks(job, [](const RankAnalysis& r) { return r.kind; })},
      {"ranks", "number of ranks", number(static_cast<int64_t>(job.ranks.size()))},
      {"world_size", "world size",
       OfRanks(job, [&](const RankAnalysis& r) { return number(r.world_size); })},
      {"step_source", "how steps were found",
       OfRanks(job, [](const RankAnalysis& r) { return std::string(Name(r.steps.source)); })},
      {"gpu", "GPUs of a rank", OfRanks(job, GpusOf)},
      {"driver", "GPU driver", Told(job, {fact::kDriverVersion, "cuda_driver_version"})},
      {"cuda", "CUDA", Told(job, {fact::kCuptiVersion, "cuda_runtime_version"})},
      {"torch", "torch", Told(job, {fact::kTorchVersion, "torch_version", "pytorch_version"})},
      {"batch_size", "batch size", Told(job, {fact::kLoaderBatchSize})},
      {"cores", "cores of the host", Told(job, {fact::kCores})},
      {"processor", "processor of the host", Told(job, {fact::kProcessor}), no_gpu},
      // Operators and memory are recorded at a cost that is part of the steps.
      {"recording_options", "options of the recording", OfRanks(job, OptionsOf)},
      {"python", "Python", Told(job, {fact::kPythonVersion}), false},
      {"host", "host", Told(job, {fact::kHost}), false},
  };
}

std::string NormalName(const Site& site) {
  if (site.file.empty()) {
    const std::string_view name = site.function.empty() ? site.op : site.function;
    const std::string_view title = KernelTitle(name);
    // Of a function in a namespace: what its templates were made with varies with shapes and types.
    const bool is_function = title.size() < name.size();
    return WithoutNumbers(is_function ? title.substr(0, title.find_first_of("<(")) : title);
  }
  const size_t slash = site.file.find_last_of("/\\");
  std::string name = site.file.substr(slash == std::string::npos ? 0 : slash + 1);
  if (!site.function.empty()) name += " " + site.function;
  if (!site.op.empty() && site.op != site.function) name += " (" + site.op + ")";
  return name;
}

std::string FingerprintOf(std::string_view rule, const Site& site) {
  // FNV-1a of 64 bits: published, short, and the same on every machine.
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
    hash *= 0x100000001b3;  // a zero byte: where one text ends
  };
  add(rule);
  add(NormalName(site));
  return fmt::format("{:016x}", hash);
}

}  // namespace trainprof
