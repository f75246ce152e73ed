#include "trace/symbols/symbolizer.h"

#include "trace/symbols/debug_info.h"
#include "trace/symbols/demangle.h"
#include "trace/symbols/elf_file.h"
#include "trace/symbols/native_frames.h"

namespace trainprof {

void Symbolize(ModuleSymbols& module, std::chrono::steady_clock::time_point deadline) {
  std::vector<uint64_t> addresses;
  for (const auto& [address, frames] : module.frames) {
    if (frames.empty()) addresses.push_back(address);
  }
  if (addresses.empty() || std::chrono::steady_clock::now() >= deadline) return;
  std::string error;
  const std::optional<ElfFile> file = ElfFile::Open(module.path, &error);
  if (!file) {
    module.state = error;
    return;
  }
  if (file->BuildId() != module.build_id) {
    module.state = "the file has changed since it was recorded";
    return;
  }
  const bool foreign = IsForeignModule(module.path);
  const bool has_debug_info = file->Has(".debug_info");
  std::unique_ptr<DebugInfo> debug_info;
  if (!foreign) debug_info = DebugInfo::Open(file->fd(), has_debug_info, module.build_id);
  if (!foreign && !debug_info) {
    module.state = !has_debug_info    ? "built without debug information: no lines"
                   : ReadsDebugInfo() ? "its debug information cannot be read: no lines"
                                      : "this trainprof was built without libdw: no lines";
  } else if (!foreign && module.build_id.empty()) {
    module.state = "has no build id: had it changed since, these lines were wrong";
  }
  const std::map<uint64_t, std::string> functions = file->FunctionsAt(addresses);
  for (const uint64_t address : addresses) {
    if (std::chrono::steady_clock::now() >= deadline) {
      module.state = "there was no time to read it";
      return;
    }
    SourceFrames& frames = module.frames[address];
    if (debug_info) frames = debug_info->FramesAt(address, deadline);
    const auto function = functions.find(address);
    if (function == functions.end()) continue;
    if (frames.empty()) frames.emplace_back();
    if (frames.back().function.empty()) frames.back().function = Demangled(function->second);
  }
}

}  // namespace trainprof
