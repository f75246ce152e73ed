#include "trace/symbols/elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace trainprof {
namespace {

constexpr uint64_t kMostTableBytes = uint64_t{1} << 30;  // of a symbol table; libtorch's has 10 MB
constexpr uint64_t kMostNoteBytes = 1 << 16;

// What the kernel makes up while it is read, which may take for ever or do something: no programs.
bool IsMadeUp(const char* path) {
  constexpr long kProc = 0x9FA0, kSys = 0x62656572, kDebug = 0x64626720, kTrace = 0x74726163;
  constexpr long kSecurity = 0x73636673, kConfig = 0x62656570, kBpf = 0xCAFE4A11;
  constexpr long kControlGroup = 0x27E0EB, kControlGroup2 = 0x63677270, kPstore = 0x6165676C;
  struct statfs status {};
  if (statfs(path, &status) != 0) return false;
  const long types[] = {kProc,   kSys, kDebug,        kTrace,         kSecurity,
                        kConfig, kBpf, kControlGroup, kControlGroup2, kPstore};
  return std::find(std::begin(types), std::end(types), static_cast<long>(status.f_type)) !=
         std::end(types);
}

}  // namespace

std::optional<ElfFile> ElfFile::Open(const std::string& path, std::string* error) {
  // To open a pipe or a device may already do something to it: it is asked what it is first.
  struct stat before {};
  if (stat(path.c_str(), &before) == 0 && (!S_ISREG(before.st_mode) || IsMadeUp(path.c_str()))) {
    *error = "not a file";
    return std::nullopt;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    *error = errno == ENOENT ? "the file is not here" : strerror(errno);
    return std::nullopt;
  }
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    *error = "not a file";
    return std::nullopt;
  }
  ElfFile file(fd, static_cast<uint64_t>(status.st_size));
  if (!file.ReadHeaders()) {
    *error = "not a 64-bit ELF file";
    return std::nullopt;
  }
  return file;
}

ElfFile::ElfFile(ElfFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      sections_(std::move(other.sections_)),
      segments_(std::move(other.segments_)),
      section_names_(std::move(other.section_names_)) {}

ElfFile::~ElfFile() {
  if (fd_ >= 0) close(fd_);
}

bool ElfFile::ReadAt(uint64_t offset, void* out, uint64_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return false;
  auto* p = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(fd_, p, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    p += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<uint64_t>(n);
  }
  return true;
}

bool ElfFile::ReadHeaders() {
  Elf64_Ehdr header{};
  if (!ReadAt(0, &header, sizeof header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
    return false;
  }
  if (header.e_phentsize == sizeof(Elf64_Phdr)) {
    segments_.resize(header.e_phnum);
    if (!ReadAt(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr))) {
      segments_.clear();
    }
  }
  if (header.e_shentsize == sizeof(Elf64_Shdr)) {
    sections_.resize(header.e_shnum);
    if (!ReadAt(header.e_shoff, sections_.data(), sections_.size() * sizeof(Elf64_Shdr))) {
      sections_.clear();
    }
  }
  if (header.e_shstrndx < sections_.size()) {
    const Elf64_Shdr& names = sections_[header.e_shstrndx];
    if (names.sh_size <= kMostNoteBytes) {
      section_names_.resize(names.sh_size);
      if (!ReadAt(names.sh_offset, section_names_.data(), names.sh_size)) section_names_.clear();
    }
  }
  return true;
}

std::string ElfFile::NameOf(const Elf64_Shdr& section) const {
  if (section.sh_name >= section_names_.size()) return {};
  const char* text = section_names_.data() + section.sh_name;
  return std::string(text, strnlen(text, section_names_.size() - section.sh_name));
}

bool ElfFile::Has(const std::string& name) const {
  return std::any_of(sections_.begin(), sections_.end(), [&](const Elf64_Shdr& section) {
    return section.sh_type != SHT_NOBITS && NameOf(section) == name;
  });
}

std::string ElfFile::BuildId() const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNoteBytes) continue;
    std::vector<unsigned char> notes(segment.p_filesz);
    if (!ReadAt(segment.p_offset, notes.data(), notes.size())) continue;
    for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= notes.size();) {
      Elf64_Nhdr note;
      memcpy(&note, notes.data() + at, sizeof note);
      const auto padded = [](uint64_t n) { return (n + 3) & ~uint64_t{3}; };
      const size_t name = at + sizeof note;
      const size_t id = name + padded(note.n_namesz);
      if (id + note.n_descsz > notes.size()) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
          memcmp(notes.data() + name, "GNU", 4) == 0) {
        constexpr char kDigits[] = "0123456789abcdef";
        std::string hex;
        for (size_t i = 0; i < note.n_descsz; ++i) {
          hex += kDigits[notes[id + i] >> 4];
          hex += kDigits[notes[id + i] & 15];
        }
        return hex;
      }
      at = id + padded(note.n_descsz);
    }
  }
  return {};
}

const Elf64_Shdr* ElfFile::SymbolSection() const {
  const Elf64_Shdr* found = nullptr;
  for (const Elf64_Shdr& section : sections_) {
    if (section.sh_type == SHT_SYMTAB) return &section;
    if (section.sh_type == SHT_DYNSYM) found = &section;
  }
  return found;
}

std::map<uint64_t, std::string> ElfFile::FunctionsAt(
    const std::vector<uint64_t>& sorted_addresses) const {
  std::map<uint64_t, std::string> names;
  const Elf64_Shdr* section = SymbolSection();
  if (section == nullptr || section->sh_link >= sections_.size()) return names;
  const Elf64_Shdr& texts = sections_[section->sh_link];
  if (section->sh_size > std::min(kMostTableBytes, size_)) return names;
  std::vector<Elf64_Sym> symbols(section->sh_size / sizeof(Elf64_Sym));
  if (!ReadAt(section->sh_offset, symbols.data(), symbols.size() * sizeof(Elf64_Sym))) return names;
  std::map<uint64_t, const Elf64_Sym*> found;
  for (const Elf64_Sym& symbol : symbols) {
    const unsigned type = ELF64_ST_TYPE(symbol.st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
    auto it = std::lower_bound(sorted_addresses.begin(), sorted_addresses.end(), symbol.st_value);
    for (; it != sorted_addresses.end() && *it - symbol.st_value < symbol.st_size; ++it) {
      const Elf64_Sym*& best = found[*it];
      // The name that others can see, of several for one place.
      const bool better = best == nullptr || (ELF64_ST_BIND(best->st_info) == STB_LOCAL &&
                                              ELF64_ST_BIND(symbol.st_info) != STB_LOCAL);
      if (better) best = &symbol;
    }
  }
  constexpr uint64_t kLongestName = 4096;
  for (const auto& [address, symbol] : found) {
    if (symbol->st_name >= texts.sh_size) continue;
    char name[kLongestName];
    const uint64_t offset = texts.sh_offset + symbol->st_name;
    const uint64_t room = std::min(kLongestName, texts.sh_size - symbol->st_name);
    if (offset > size_ || !ReadAt(offset, name, std::min(room, size_ - offset))) continue;
    names[address].assign(name, strnlen(name, std::min(room, size_ - offset)));
  }
  return names;
}

std::map<std::string, ElfFile::Symbol> ElfFile::SymbolsOf(
    const std::set<std::string, std::less<>>& names) const {
  std::map<std::string, Symbol> found;
  for (const auto type : {SHT_DYNSYM, SHT_SYMTAB}) {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != static_cast<uint32_t>(type) || section.sh_link >= sections_.size()) {
        continue;
      }
      const Elf64_Shdr& texts = sections_[section.sh_link];
      const uint64_t most = std::min(kMostTableBytes, size_);
      if (section.sh_size > most || texts.sh_size > most) continue;
      std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
      std::vector<char> text(texts.sh_size + 1);  // ends with a zero, whatever the file says
      if (!ReadAt(section.sh_offset, symbols.data(), symbols.size() * sizeof(Elf64_Sym)) ||
          !ReadAt(texts.sh_offset, text.data(), texts.sh_size)) {
        continue;
      }
      for (const Elf64_Sym& symbol : symbols) {
        if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= texts.sh_size) continue;
        const char* name = text.data() + symbol.st_name;
        if (names.contains(name)) found.try_emplace(name, Symbol{symbol.st_value, symbol.st_size});
      }
    }
    if (!found.empty()) break;
  }
  return found;
}

std::map<uint64_t, uint64_t> ElfFile::LoadedSegments() const {
  std::map<uint64_t, uint64_t> segments;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type == PT_LOAD) segments.try_emplace(segment.p_offset, segment.p_vaddr);
  }
  return segments;
}

}  // namespace trainprof
