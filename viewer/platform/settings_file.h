// Settings between two runs: a JSON file. Whatever is wrong with it, the viewer starts.
#pragma once

#include <filesystem>

#include "trace/base/result.h"
#include "viewer/state/state.h"

namespace trainprof {

// $XDG_CONFIG_HOME/trainprof/viewer.json, else below ~/.config; empty where there is no home.
std::filesystem::path SettingsPath();

// What the file does not say, or says wrongly, is as in Settings{}.
Settings LoadSettings(const std::filesystem::path& path);
// Written as trace/io/output_file.h does.
Result<void> SaveSettings(const std::filesystem::path& path, const Settings& settings);

}  // namespace trainprof
