#include "trace/recording/seal/manifest.h"

#include <errno.h>
#include <string.h>

#include <nlohmann/json.hpp>

#include "trace/recording/files/host_file.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/wire/format.h"

namespace trainprof::recording {
namespace {

using nlohmann::json;

json ToJson(const ProcessSummary& p) {
  json threads = json::array();
  for (const ThreadSummary& thread : p.threads) {
    threads.push_back({{"tid", thread.tid}, {"name", thread.name}});
  }
  json out = {{"pid", p.pid},
              {"parent_pid", p.parent_pid},
              {"rank", p.rank >= 0 ? json(p.rank) : json(nullptr)},
              {"role", p.role},
              {"file", p.folder + "/" + p.file},
              {"command", p.command},
              {"events", p.events},
              {"bytes", p.bytes},
              {"dropped_detail", p.dropped_detail},
              {"dropped_all", p.dropped_all},
              {"ended", p.ended},
              {"clean_exit", p.clean_exit},
              {"sealed", p.sealed},
              {"threads", std::move(threads)}};
  if (!p.failure.empty()) out["failure"] = p.failure;
  return out;
}

json ToJson(const RunDescription& run, const RecordingSummary* summary,
            const std::vector<std::string>& samples) {
  json out = {{"format", "trainprof recording"},
              {"format_version", kFormatVersion},
              {"trainprof_version", run.trainprof_version},
              {"command", run.command},
              {"host", run.host},
              {"working_directory", run.working_directory},
              {"options", run.collector_options},
              {"max_bytes", run.max_bytes == UINT64_MAX ? json(nullptr) : json(run.max_bytes)},
              {"start_unix_ns", run.start_unix_ns},
              {"end_unix_ns", run.end_unix_ns != 0 ? json(run.end_unix_ns) : json(nullptr)},
              {"program_pid", run.program_pid},
              {"exit_code", run.exit_code ? json(*run.exit_code) : json(nullptr)},
              {"signal", run.signal ? json(*run.signal) : json(nullptr)},
              {"warnings", run.warnings}};
  if (summary == nullptr) return out;
  json processes = json::array();
  for (const ProcessSummary& process : summary->processes) processes.push_back(ToJson(process));
  out["processes"] = std::move(processes);
  out["samples"] = samples;
  out["total_bytes"] = summary->total_bytes;
  out["failed_processes"] = summary->failed_processes;
  out["lost_events"] = summary->lost_events;
  out["left_raw"] = summary->left_raw;
  if (!summary->failure.empty()) out["failure"] = summary->failure;
  return out;
}

}  // namespace

Result<void> WriteManifest(const std::filesystem::path& run_dir, const RunDescription& run,
                           const RecordingSummary* summary) {
  const Result<RecordedFolder> folder = OpenFolder(run_dir, Links::kFollow);
  if (!folder.ok()) return Error{folder.error()};
  std::vector<std::string> samples;
  for (const char* prefix : {kHostPrefix, kStacksPrefix}) {
    for (const auto& file : HostFilesIn(run_dir, prefix)) samples.push_back(file.filename());
  }
  // Arguments and names of the program need not be UTF-8: replaced, never a reason to fail.
  std::string text =
      ToJson(run, summary, samples).dump(2, ' ', false, json::error_handler_t::replace);
  text += '\n';
  if (!folder.value().Replace(kManifestFile, text)) {
    return Error{(run_dir / kManifestFile).string() + ": cannot write: " + strerror(errno)};
  }
  return {};
}

}  // namespace trainprof::recording
