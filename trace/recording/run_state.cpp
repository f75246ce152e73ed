// Manifests come from anywhere: every member is checked, and nothing but a regular file is read.
#include "trace/recording/run_state.h"

#include <nlohmann/json.hpp>

#include "trace/recording/layout.h"
#include "trace/recording/recorded_files.h"
#include "trace/recording/run_directory.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMaxManifestBytes = uint64_t{16} << 20;

std::optional<int> IntOf(const json& manifest, const char* key) {
  const auto it = manifest.find(key);
  if (it == manifest.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<int>();
}

// Sealed since, or not: either form will do.
bool IsThere(const fs::path& file) {
  std::error_code error;
  for (const char* suffix : {kSegmentSuffix, kSealedSuffix}) {
    if (fs::exists(fs::path(file).replace_extension(suffix), error)) return true;
  }
  return false;
}

// A name from a manifest leads nowhere but into a folder of the recording.
bool IsPlain(const fs::path& file) {
  return file.is_relative() && std::distance(file.begin(), file.end()) == 2 &&
         file.lexically_normal() == file && *file.begin() != "..";
}

std::vector<std::string> MissingFiles(const fs::path& run_dir, const json& manifest) {
  std::vector<std::string> missing;
  const auto processes = manifest.find("processes");
  if (processes == manifest.end() || !processes->is_array()) return missing;
  for (const json& process : *processes) {
    if (!process.is_object() || !process.contains("file") || !process["file"].is_string()) continue;
    const fs::path file = process["file"].get<std::string>();
    if (IsPlain(file) && !IsThere(run_dir / file)) missing.push_back(file.string());
  }
  return missing;
}

}  // namespace

RunState ReadRunState(const fs::path& path) {
  std::error_code error;
  const bool is_run = IsRunDirectory(path) || fs::exists(path / kManifestFile, error);
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  const fs::path folder = absolute.filename().empty() ? absolute.parent_path() : absolute;
  const fs::path run_dir = is_run                          ? path
                           : fs::is_directory(path, error) ? folder.parent_path()
                                                           : folder.parent_path().parent_path();
  const Result<std::string> text =
      ReadRecorded(run_dir / kManifestFile, Links::kFollow, kMaxManifestBytes);
  RunState state;
  if (!text.ok()) return state;
  const json manifest = json::parse(text.value(), nullptr, false);
  if (!manifest.is_object()) return state;
  state.known = true;
  const auto end = manifest.find("end_unix_ns");
  state.ended = end != manifest.end() && end->is_number();
  state.exit_code = IntOf(manifest, "exit_code");
  state.signal = IntOf(manifest, "signal");
  if (is_run) state.missing_files = MissingFiles(run_dir, manifest);
  return state;
}

}  // namespace trainprof::recording
