#include "collectors/stacks/python_finder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <sstream>

namespace trainprof {
namespace {

namespace fs = std::filesystem;

constexpr char kRuntime[] = "_PyRuntime";
constexpr char kPythonVersion[] = "Py_Version";  // since 3.11
constexpr char kCodeType[] = "PyCode_Type";
constexpr char kTextType[] = "PyUnicode_Type";
constexpr char kBytesType[] = "PyBytes_Type";
constexpr char kFrameType[] = "PyFrame_Type";

// Programs that Python is part of are few; a directory of files that only look like it is no end.
constexpr size_t kMostFiles = 1000;

// "10" of "/usr/lib/libpython3.10.so.1.0" and "python3.10"; nothing where the name does not say.
std::optional<int> MinorInName(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const size_t at = name.find("python3.");
  if (at == std::string::npos) return std::nullopt;
  const char* digits = name.data() + at + strlen("python3.");
  int minor = 0;
  const auto [end, error] = std::from_chars(digits, name.data() + name.size(), minor);
  if (error != std::errc() || end == digits) return std::nullopt;
  return minor;
}

bool IsLibPython(const std::string& path) {
  return path.compare(path.rfind('/') + 1, strlen("libpython3"), "libpython3") == 0;
}

std::string InWords(const ToldLayout& told) {
  switch (told.fault) {
    case LayoutFault::kNone:
      break;
    case LayoutFault::kSaysNothing:
      return "its runtime does not say where it keeps its stacks";
    case LayoutFault::kUnknownVersion:
      return "this trainprof does not know how Python 3." + std::to_string(told.layout.minor) +
             " keeps its stacks";
    case LayoutFault::kFreeThreaded:
      return "this trainprof does not read the stacks of free-threaded Python";
    case LayoutFault::kCannotBe:
      return "its runtime says where it keeps its stacks in a way that cannot be";
  }
  return {};
}

Result<PythonLayout> LayoutIn(RemoteMemory& memory, uint64_t runtime, int minor) {
  if (const auto layout = LayoutOf(minor)) return *layout;
  char head[kDebugOffsetsBytes];
  if (!memory.Read(runtime, head, sizeof head)) return Error{WhyUnreadable(memory.error())};
  const ToldLayout told = LayoutFromDebugOffsets(head);
  if (told.fault != LayoutFault::kNone) return Error{InWords(told)};
  return told.layout;
}

}  // namespace

// The executable first, then each libpython: of each file the mapping that comes first.
std::vector<PythonFinder::Mapping> PythonFinder::Candidates(pid_t pid) {
  const fs::path folder = proc_ / std::to_string(pid);
  std::error_code error;
  const std::string executable = fs::read_symlink(folder / "exe", error).string();
  std::vector<Mapping> found;
  std::ifstream maps(folder / "maps");
  // "55d0c000-55d0d000 r--p 00000000 08:01 1234   /usr/bin/python3.11"
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    Mapping mapping;
    mapping.path = line.substr(slash);
    if (mapping.path != executable && !IsLibPython(mapping.path)) continue;
    if (!found.empty() && found.back().path == mapping.path) continue;
    std::istringstream words(line);
    char dash = 0;
    std::string rights;
    words >> std::hex >> mapping.begin >> dash;
    uint64_t end = 0;
    words >> end >> rights >> mapping.file_offset;
    if (words) found.push_back(std::move(mapping));
  }
  return found;
}

const PythonFinder::Symbols& PythonFinder::SymbolsOf(const std::string& path) {
  static const Symbols kNone;
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return kNone;
  const FileKey key(status.st_dev, status.st_ino, status.st_size, status.st_mtime);
  if (const auto known = symbols_.find(key); known != symbols_.end()) return known->second;
  if (symbols_.size() >= kMostFiles) symbols_.clear();
  Symbols& symbols = symbols_[key];
  std::string error;
  const auto file = ElfFile::Open(path, &error);
  if (!file) return symbols;
  symbols.known =
      file->SymbolsOf({kRuntime, kPythonVersion, kCodeType, kTextType, kBytesType, kFrameType});
  symbols.segments = file->LoadedSegments();
  symbols.is_python = symbols.known.contains(kRuntime);
  return symbols;
}

Result<std::optional<PythonPlace>> PythonFinder::PlaceIn(pid_t pid, const Mapping& mapping) {
  const std::optional<PythonPlace> none;
  const Symbols& symbols =
      SymbolsOf((proc_ / std::to_string(pid) / "root").string() + mapping.path);
  if (!symbols.is_python) return none;
  // The segment whose page the mapping's first byte is in.
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t bias = 0;
  bool is_loaded = false;
  for (const auto& [offset, address] : symbols.segments) {
    if (offset / page != mapping.file_offset / page) continue;
    bias = mapping.begin - address / page * page;
    is_loaded = true;
  }
  if (!is_loaded) return none;
  const auto address = [&](const char* name) {
    const auto it = symbols.known.find(name);
    return it == symbols.known.end() ? 0 : it->second.address + bias;
  };
  RemoteMemory memory(pid, given_);
  uint64_t version = 0;
  std::optional<int> minor = MinorInName(mapping.path);
  if (const uint64_t at = address(kPythonVersion); at != 0) {
    if (!memory.Read(at, version)) {
      if (memory.error() == ESRCH) return none;
      return Error{WhyUnreadable(memory.error())};
    }
    minor = static_cast<int>(version >> 16 & 0xFF);
  }
  if (!minor) return Error{"its Python does not say which version it is"};
  PythonPlace place;
  place.runtime = address(kRuntime);
  place.runtime_bytes = symbols.known.at(kRuntime).bytes;
  place.code_type = address(kCodeType);
  place.text_type = address(kTextType);
  place.bytes_type = address(kBytesType);
  place.frame_type = address(kFrameType);
  Result<PythonLayout> layout = LayoutIn(memory, place.runtime, *minor);
  if (!layout.ok()) return Error{layout.error()};
  place.layout = layout.value();
  return std::optional(place);
}

Result<std::optional<PythonPlace>> PythonFinder::Find(pid_t pid) {
  for (const Mapping& mapping : Candidates(pid)) {
    auto place = PlaceIn(pid, mapping);
    if (!place.ok() || place.value()) return place;
  }
  return std::optional<PythonPlace>();
}

}  // namespace trainprof
