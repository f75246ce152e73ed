#include "trace/recording/seal/symbols_file.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/recorded_json.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::recording {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int kSymbolsVersion = 1;
constexpr char kSymbolsSuffix[] = ".symbols.json";
// Some 300,000 addresses. As a tree it takes ten times as much.
constexpr uint64_t kMostSymbolsBytes = 32 * 1024 * 1024;

fs::path SymbolsPath(fs::path segment) { return segment.replace_extension(kSymbolsSuffix); }

std::string Hex(const ModuleFacts& facts) {
  std::string hex;
  const size_t bytes = std::min<size_t>(facts.build_id_bytes, sizeof facts.build_id);
  for (size_t i = 0; i < bytes; ++i) hex += fmt::format("{:02x}", facts.build_id[i]);
  return hex;
}

std::string StringAt(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

Json ToJson(const SourceFrames& frames) {
  Json list = Json::array();
  for (const SourceFrame& frame : frames) {
    list.push_back(Json::array({frame.function, frame.file, frame.line}));
  }
  return list;
}

SourceFrames FramesOf(const Json& list) {
  SourceFrames frames;
  if (!list.is_array()) return frames;
  for (const Json& item : list) {
    if (!item.is_array() || item.size() != 3 || !item[0].is_string() || !item[1].is_string() ||
        !item[2].is_number_integer()) {
      return {};
    }
    frames.push_back(
        {item[0].get<std::string>(), item[1].get<std::string>(), item[2].get<int64_t>()});
  }
  return frames;
}

Json ToJson(const ModuleSymbols& module) {
  Json frames = Json::object();
  for (const auto& [address, found] : module.frames) {
    if (!found.empty()) frames[fmt::format("{:x}", address)] = ToJson(found);
  }
  Json json{{"path", module.path}, {"build_id", module.build_id}, {"frames", std::move(frames)}};
  if (!module.state.empty()) json["state"] = module.state;
  return json;
}

bool Write(const fs::path& path, const std::vector<ModuleSymbols>& modules) {
  Json list = Json::array();
  for (const ModuleSymbols& module : modules) {
    if (!module.frames.empty()) list.push_back(ToJson(module));
  }
  const Json json{{"version", kSymbolsVersion}, {"modules", std::move(list)}};
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const Result<RecordedFolder> folder = OpenFolder(path.parent_path(), Links::kRefuse);
  return folder.ok() && folder.value().Replace(path.filename(), text);
}

bool AnyFrameMissing(const std::vector<ModuleSymbols>& modules) {
  for (const ModuleSymbols& module : modules) {
    for (const auto& [address, frames] : module.frames) {
      if (frames.empty()) return true;
    }
  }
  return false;
}

}  // namespace

bool PlaceOf(const SegmentScan& scan, uint64_t return_address, size_t* module, uint64_t* key) {
  const uint64_t address = return_address - 1;
  for (size_t i = scan.modules.size(); i-- > 0;) {  // the latest that was mapped there
    const ModuleFacts& facts = scan.modules[i].facts;
    if (address < facts.begin || address >= facts.end) continue;
    *module = i;
    *key = address - facts.load_bias;
    return true;
  }
  return false;
}

std::vector<ModuleSymbols> AddressesOf(const SegmentScan& scan) {
  std::vector<ModuleSymbols> modules;
  for (const ScannedModule& module : scan.modules) {
    modules.push_back({module.path, Hex(module.facts), {}, {}});
  }
  std::set<StackKey> used;
  for (const auto& [correlation, call] : scan.stack_of_call) used.insert(call.stack);
  for (const auto& [name, call] : scan.stack_of_name) used.insert(call.stack);
  for (const StackKey& key : used) {
    const auto stack = scan.stacks.find(key);
    if (stack == scan.stacks.end()) continue;
    for (const uint64_t frame : stack->second) {
      size_t module = 0;
      uint64_t address = 0;
      if (PlaceOf(scan, frame, &module, &address)) modules[module].frames[address];
    }
  }
  return modules;
}

std::string ReadSymbols(const fs::path& segment, std::vector<ModuleSymbols>& modules) {
  const fs::path path = SymbolsPath(segment);
  std::error_code error;
  if (fs::symlink_status(path, error).type() == fs::file_type::not_found) return {};
  const Result<std::string> text = ReadRecorded(path, Links::kRefuse, kMostSymbolsBytes);
  if (!text.ok()) return text.error();
  const Json json = ParseRecorded(text.value());
  const bool known = json.is_object() && json.value("version", Json()) == kSymbolsVersion;
  const auto list = known ? json.find("modules") : json.end();
  if (!known || list == json.end() || !list->is_array()) {
    return path.string() +
           ": is damaged, or of a newer version; its functions and lines are missing";
  }
  for (const Json& item : *list) {
    if (!item.is_object()) continue;
    const std::string path = StringAt(item, "path");
    const std::string build_id = StringAt(item, "build_id");
    const auto frames = item.find("frames");
    if (frames == item.end() || !frames->is_object()) continue;
    for (ModuleSymbols& module : modules) {
      if (module.path != path || module.build_id != build_id) continue;
      module.state = StringAt(item, "state");
      for (auto& [address, found] : module.frames) {
        const auto known = frames->find(fmt::format("{:x}", address));
        if (known != frames->end()) found = FramesOf(*known);
      }
    }
  }
  return {};
}

Result<void> SymbolizeRecording(const fs::path& run_dir,
                                std::chrono::steady_clock::time_point deadline) {
  for (const RankFolder& folder : RankFoldersIn(run_dir)) {
    for (const fs::path& path : folder.segments) {
      if (std::chrono::steady_clock::now() >= deadline) return {};
      Quality quality;
      Result<SegmentReader> segment = SegmentReader::Open(path, quality);
      if (!segment.ok()) continue;  // ReadRecording names it
      if (!IsOfThisBoot(segment.value().info())) continue;
      const SegmentScan scan = ScanSegment(segment.value(), quality);
      std::vector<ModuleSymbols> modules = AddressesOf(scan);
      ReadSymbols(path, modules);
      if (!AnyFrameMissing(modules)) continue;
      for (ModuleSymbols& module : modules) Symbolize(module, deadline);
      if (!Write(SymbolsPath(path), modules)) {
        return Error{SymbolsPath(path).string() + ": cannot be written"};
      }
    }
  }
  return {};
}

}  // namespace trainprof::recording
