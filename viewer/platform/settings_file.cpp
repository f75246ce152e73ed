#include "viewer/platform/settings_file.h"

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "trace/io/output_file.h"

namespace trainprof {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostRecent = 10;
// Lengths in points and sizes of windows that no display has.
constexpr float kMostPoints = 20'000;

void Read(const Json& json, const char* name, bool& value) {
  if (const auto it = json.find(name); it != json.end() && it->is_boolean())
    value = it->get<bool>();
}

// Numbers within [least, most]; others are not taken.
template <class Number>
void Read(const Json& json, const char* name, Number least, Number most, Number& value) {
  const auto it = json.find(name);
  if (it == json.end() || !it->is_number()) return;
  const auto number = it->get<double>();
  if (std::isfinite(number) && number >= least && number <= most) {
    value = static_cast<Number>(number);
  }
}

void ReadRecent(const Json& json, Settings& settings) {
  const auto it = json.find("recent");
  if (it == json.end() || !it->is_array()) return;
  for (const Json& path : *it) {
    if (path.is_string() && settings.recent.size() < kMostRecent) {
      settings.recent.emplace_back(path.get<std::string>());
    }
  }
}

Settings SettingsOf(const Json& json) {
  Settings settings;
  if (!json.is_object()) return settings;
  if (const auto it = json.find("theme"); it != json.end() && *it == "light") {
    settings.theme = ThemeName::kLight;
  }
  Read(json, "scale", 0.f, 4.f, settings.scale);
  Read(json, "names_width", 0.f, kMostPoints, settings.names_width);
  Read(json, "bottom_height", 0.f, kMostPoints, settings.bottom_height);
  Read(json, "findings_width", 0.f, kMostPoints, settings.findings_width);
  Read(json, "selection_width", 0.f, kMostPoints, settings.selection_width);
  Read(json, "show_ribbon", settings.show_ribbon);
  Read(json, "show_overview", settings.show_overview);
  Read(json, "show_bottom", settings.show_bottom);
  Read(json, "window_width", 320, 20'000, settings.window_width);
  Read(json, "window_height", 240, 20'000, settings.window_height);
  ReadRecent(json, settings);
  return settings;
}

Json JsonOf(const Settings& settings) {
  Json recent = Json::array();
  for (const std::filesystem::path& path : settings.recent) recent.push_back(path.string());
  return {{"theme", settings.theme == ThemeName::kLight ? "light" : "dark"},
          {"scale", settings.scale},
          {"names_width", settings.names_width},
          {"bottom_height", settings.bottom_height},
          {"findings_width", settings.findings_width},
          {"selection_width", settings.selection_width},
          {"show_ribbon", settings.show_ribbon},
          {"show_overview", settings.show_overview},
          {"show_bottom", settings.show_bottom},
          {"window_width", settings.window_width},
          {"window_height", settings.window_height},
          {"recent", recent}};
}

}  // namespace

std::filesystem::path SettingsPath() {
  const std::filesystem::path name = std::filesystem::path("trainprof") / "viewer.json";
  // The base directory specification wants relative values ignored.
  if (const char* config = std::getenv("XDG_CONFIG_HOME"); config != nullptr && config[0] == '/') {
    return config / name;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && home[0] == '/') {
    return std::filesystem::path(home) / ".config" / name;
  }
  return {};
}

Settings LoadSettings(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return {};
  std::ifstream file(path);
  return SettingsOf(Json::parse(file, nullptr, /*allow_exceptions=*/false));
}

Result<void> SaveSettings(const std::filesystem::path& path, const Settings& settings) {
  if (path.empty()) return Error{"settings are not kept: neither XDG_CONFIG_HOME nor HOME is set"};
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  // Names of files need not be UTF-8.
  const std::string text = JsonOf(settings).dump(2, ' ', false, Json::error_handler_t::replace);
  const Result<void> written = WriteOutputFile(path.string(), text + "\n");
  if (written.ok()) return written;
  return Error{"settings are not kept: " + written.error()};
}

}  // namespace trainprof
