// Manifests come from anywhere: every member is checked, and nothing but a regular file is read.
#include "trace/recording/files/run_state.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "trace/recording/files/clock_log.h"
#include "trace/recording/files/host_format.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/recorded_json.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/wire/layout.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Of some 10,000 processes. As a tree a hostile one takes twenty times as much.
constexpr uint64_t kMaxManifestBytes = uint64_t{8} << 20;

std::optional<int> IntOf(const json& manifest, const char* key) {
  const auto it = manifest.find(key);
  if (it == manifest.end() || !it->is_number_integer()) return std::nullopt;
  const auto number = it->get<int64_t>();
  return std::in_range<int>(number) ? std::optional(static_cast<int>(number)) : std::nullopt;
}

// Sealed since, or not: either form will do.
bool IsThere(const fs::path& file) {
  std::error_code error;
  const bool is_segment = IsSegmentFile(file);
  for (const char* suffix : {is_segment ? kSegmentSuffix : kHostSuffix,
                             is_segment ? kSealedSuffix : kSealedHostSuffix}) {
    if (fs::exists(fs::path(file).replace_extension(suffix), error)) return true;
  }
  return false;
}

// A name from a manifest leads nowhere but into the recording, that deep.
bool IsPlain(const fs::path& file, ptrdiff_t parts) {
  return file.is_relative() && std::distance(file.begin(), file.end()) == parts &&
         file.lexically_normal() == file && *file.begin() != "..";
}

std::vector<std::string> MissingFiles(const fs::path& run_dir, const json& manifest) {
  std::vector<std::string> missing;
  const auto look = [&](const json& name, ptrdiff_t parts) {
    if (!name.is_string()) return;
    const fs::path file = name.get<std::string>();
    if (IsPlain(file, parts) && !IsThere(run_dir / file)) missing.push_back(file.string());
  };
  const auto for_each = [&](const char* key, auto use) {
    const auto list = manifest.find(key);
    if (list == manifest.end() || !list->is_array()) return;
    for (const json& item : *list) use(item);
  };
  for_each("processes", [&](const json& process) {
    if (process.is_object()) look(process.value("file", json()), 2);
  });
  for_each("samples", [&](const json& name) { look(name, 1); });
  return missing;
}

}  // namespace

RunState ReadRunState(const fs::path& path) {
  RunState state;
  const fs::path run_dir = RunOf(path);
  if (run_dir.empty()) return state;
  const bool is_named = run_dir == Resolved(path);  // not a part of it
  const fs::path file = run_dir / kManifestFile;
  std::error_code error;
  if (is_named && IsRunDirectory(run_dir)) {
    const char* const what = fs::exists(file, error) ? "a damaged " : "no ";
    state.no_manifest = fmt::format("the recording has {}{}", what, kManifestFile);
  }
  if (is_named && IsControlDamaged(run_dir)) state.damaged_files.emplace_back(kControlFile);
  if (is_named && ReadClockLog(run_dir).damaged) state.damaged_files.emplace_back(kClockFile);
  const Result<std::string> text = ReadRecorded(file, Links::kFollow, kMaxManifestBytes);
  if (!text.ok()) return state;
  const json manifest = ParseRecorded(text.value());
  state.known = manifest.is_object() && manifest.contains("exit_code") &&
                manifest.contains("signal") &&
                manifest.value("format", json()) == "trainprof recording";
  if (!state.known) return state;
  state.no_manifest.clear();
  const auto end = manifest.find("end_unix_ns");
  state.ended = end != manifest.end() && end->is_number();
  state.exit_code = IntOf(manifest, "exit_code");
  state.signal = IntOf(manifest, "signal");
  if (const json host = manifest.value("host", json()); host.is_string()) state.host = host;
  if (is_named) state.missing_files = MissingFiles(run_dir, manifest);
  return state;
}

std::string HowItWasKilled(const fs::path& path) {
  const RunState state = ReadRunState(path);
  if (!state.known) return {};
  if (state.signal) {
    const bool known = *state.signal > 0 && *state.signal < NSIG;
    return fmt::format("the program was ended by signal {}{}", *state.signal,
                       known ? fmt::format(" ({})", strsignal(*state.signal)) : "");
  }
  if (state.exit_code) return {};
  return "the run was killed: how the program ended was not recorded";
}

}  // namespace trainprof::recording
