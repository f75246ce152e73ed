#include "trace/recording/run_end.h"

#include <fmt/format.h>
#include <signal.h>
#include <string.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/recording/layout.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uintmax_t kMostManifestBytes = 64 << 20;
constexpr int kMostFoldersUp = 2;  // from a segment to its run

// null where there is none that can be read.
json ReadManifest(const fs::path& run) {
  std::error_code error;
  const fs::path path = run / kManifestFile;
  if (!fs::is_regular_file(fs::symlink_status(path, error))) return {};
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kMostManifestBytes) return {};
  std::ifstream file(path, std::ios::binary);
  json manifest = json::parse(file, nullptr, false);
  const bool is_ours = manifest.is_object() && manifest.contains("signal") &&
                       manifest.contains("exit_code") &&
                       manifest.value("format", json()) == "trainprof recording";
  return is_ours ? manifest : json();
}

}  // namespace

std::string HowItWasKilled(const fs::path& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error);
  if (!folder.has_filename()) folder = folder.parent_path();
  for (int up = 0; up <= kMostFoldersUp; ++up, folder = folder.parent_path()) {
    const json manifest = ReadManifest(folder);
    if (!manifest.is_object()) continue;
    if (const json& signal = manifest["signal"]; signal.is_number_integer()) {
      const auto number = signal.get<int64_t>();
      const bool known = number > 0 && number < NSIG;
      return fmt::format("the program was ended by signal {}{}", number,
                         known ? fmt::format(" ({})", strsignal(static_cast<int>(number))) : "");
    }
    if (!manifest["exit_code"].is_null()) return {};
    return "the run was killed: how the program ended was not recorded";
  }
  return {};
}

}  // namespace trainprof::recording
