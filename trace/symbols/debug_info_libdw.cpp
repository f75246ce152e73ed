// DWARF through elfutils' libdw. Looks things up address by address: only the compilation units
// that addresses lie in are parsed.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "trace/symbols/debug_info.h"
#include "trace/symbols/demangle.h"

namespace trainprof {
namespace {

using Deadline = std::chrono::steady_clock::time_point;

std::string FunctionOf(Dwarf_Die& die) {
  Dwarf_Attribute attribute;
  for (const unsigned int name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    if (dwarf_attr_integrate(&die, name, &attribute) == nullptr) continue;
    if (const char* text = dwarf_formstring(&attribute)) return Demangled(text);
  }
  const char* text = dwarf_diename(&die);
  return text == nullptr ? std::string() : text;
}

int64_t NumberOf(Dwarf_Die& die, unsigned int name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr) return 0;
  return dwarf_formudata(&attribute, &value) == 0 ? static_cast<int64_t>(value) : 0;
}

// A compiler that was given a relative path notes its own folder beside it.
std::string AbsoluteFile(Dwarf_Die& unit, const char* file) {
  if (file[0] == '/') return file;
  Dwarf_Attribute attribute;
  const char* folder = dwarf_formstring(dwarf_attr(&unit, DW_AT_comp_dir, &attribute));
  if (folder == nullptr) return file;
  const std::filesystem::path joined = std::filesystem::path(folder) / file;
  return folder[0] == '/' ? joined.lexically_normal().string() : joined.string();
}

class LibdwInfo : public DebugInfo {
 public:
  LibdwInfo(Dwarf* dwarf, int own_fd) : dwarf_(dwarf), own_fd_(own_fd) {}
  ~LibdwInfo() override {
    dwarf_end(dwarf_);
    if (own_fd_ >= 0) close(own_fd_);
  }

  SourceFrames FramesAt(uint64_t address, Deadline deadline) override {
    Dwarf_Die unit;
    if (!FindUnit(address, deadline, unit)) return {};
    SourceFrame here;
    if (Dwarf_Line* line = dwarf_getsrc_die(&unit, address)) {
      int number = 0;
      const char* file = dwarf_linesrc(line, nullptr, nullptr);
      if (file != nullptr && dwarf_lineno(line, &number) == 0) {
        here.file = AbsoluteFile(unit, file);
        here.line = number;
      }
    }
    return Unfold(unit, address, std::move(here));
  }

 private:
  bool FindUnit(uint64_t address, Deadline deadline, Dwarf_Die& unit) {
    if (dwarf_addrdie(dwarf_, address, &unit) != nullptr) return true;
    // No .debug_aranges: ask each unit.
    Dwarf_Off offset = 0;
    Dwarf_Off next = 0;
    size_t header = 0;
    while (dwarf_nextcu(dwarf_, offset, &next, &header, nullptr, nullptr, nullptr) == 0) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      if (dwarf_offdie(dwarf_, offset + header, &unit) != nullptr &&
          dwarf_haspc(&unit, address) > 0) {
        return true;
      }
      offset = next;
    }
    return false;
  }

  // The function around the address, and those into which it was inlined: each frame's place is
  // where the one inside it was called.
  static SourceFrames Unfold(Dwarf_Die& unit, uint64_t address, SourceFrame here) {
    SourceFrames frames;
    std::vector<Dwarf_Die> scopes;
    FindScopes(unit, address, 0, scopes);
    for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
      const int tag = dwarf_tag(&*scope);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
      here.function = FunctionOf(*scope);
      frames.push_back(here);
      if (tag == DW_TAG_subprogram) break;
      here = CallSite(unit, *scope);
    }
    if (frames.empty() && !here.file.empty()) frames.push_back(std::move(here));
    return frames;
  }

  // The functions and blocks around the address, outermost first. Not dwarf_getscopes: it leaves
  // out what stands in a namespace, where Clang writes its functions (GCC: beside it).
  static bool FindScopes(Dwarf_Die& parent, uint64_t address, int depth,
                         std::vector<Dwarf_Die>& scopes) {
    constexpr int kMostDepth = 200;  // a damaged file may be as deep as it likes
    Dwarf_Die child;
    if (depth > kMostDepth || dwarf_child(&parent, &child) != 0) return false;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_namespace || tag == DW_TAG_module) {
        if (FindScopes(child, address, depth + 1, scopes)) return true;
      } else if (IsCode(tag) && dwarf_haspc(&child, address) > 0) {
        scopes.push_back(child);
        FindScopes(child, address, depth + 1, scopes);
        return true;
      }
    } while (dwarf_siblingof(&child, &child) == 0);
    return false;
  }

  static bool IsCode(int tag) {
    return tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
           tag == DW_TAG_lexical_block || tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
  }

  static SourceFrame CallSite(Dwarf_Die& unit, Dwarf_Die& inlined) {
    SourceFrame site;
    Dwarf_Files* files = nullptr;
    size_t count = 0;
    const auto index = static_cast<size_t>(NumberOf(inlined, DW_AT_call_file));
    if (dwarf_getsrcfiles(&unit, &files, &count) == 0 && index < count) {
      if (const char* file = dwarf_filesrc(files, index, nullptr, nullptr)) {
        site.file = AbsoluteFile(unit, file);
      }
    }
    site.line = NumberOf(inlined, DW_AT_call_line);
    return site;
  }

  Dwarf* dwarf_;
  int own_fd_;
};

}  // namespace

bool ReadsDebugInfo() { return true; }

std::unique_ptr<DebugInfo> DebugInfo::Open(int fd, bool has_debug_sections,
                                           const std::string& build_id) {
  if (has_debug_sections) {
    Dwarf* dwarf = dwarf_begin(fd, DWARF_C_READ);
    return dwarf == nullptr ? nullptr : std::make_unique<LibdwInfo>(dwarf, -1);
  }
  constexpr size_t kFolderDigits = 2;
  if (build_id.size() <= kFolderDigits) return nullptr;
  const std::string path = "/usr/lib/debug/.build-id/" + build_id.substr(0, kFolderDigits) + "/" +
                           build_id.substr(kFolderDigits) + ".debug";
  const int own_fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (own_fd < 0) return nullptr;
  Dwarf* dwarf = dwarf_begin(own_fd, DWARF_C_READ);
  if (dwarf == nullptr) {
    close(own_fd);
    return nullptr;
  }
  return std::make_unique<LibdwInfo>(dwarf, own_fd);
}

}  // namespace trainprof
