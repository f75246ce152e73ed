// The little that symbolising needs of an ELF file: its build id, which sections it has, and which
// functions cover some addresses; and where named data lies. Reads with pread: the file may change meanwhile.
#pragma once

#include <elf.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainprof {

class ElfFile {
 public:
  // nullopt: no regular file, or no little-endian ELF64 file; *error says which, in words.
  static std::optional<ElfFile> Open(const std::string& path, std::string* error);
  ElfFile(ElfFile&& other) noexcept;
  ElfFile& operator=(ElfFile&&) = delete;
  ~ElfFile();

  int fd() const { return fd_; }
  std::string BuildId() const;  // lower-case hex, "" without one
  bool Has(const std::string& section) const;
  // The mangled name of the function that covers each address, from .symtab, else .dynsym. Takes
  // the memory of the symbol table; O(symbols log addresses).
  std::map<uint64_t, std::string> FunctionsAt(const std::vector<uint64_t>& sorted_addresses) const;
  struct Symbol {
    uint64_t address = 0;  // in the file
    uint64_t bytes = 0;
  };
  // Of data and functions that the file defines under these names, from .dynsym, else .symtab.
  // O(symbols), and the memory of the tables.
  std::map<std::string, Symbol> SymbolsOf(const std::set<std::string, std::less<>>& names) const;
  // Where each part of the file that is loaded lies: its offset, and its address in the file.
  std::map<uint64_t, uint64_t> LoadedSegments() const;

 private:
  ElfFile(int fd, uint64_t size) : fd_(fd), size_(size) {}
  bool ReadHeaders();
  bool ReadAt(uint64_t offset, void* out, uint64_t bytes) const;
  std::string NameOf(const Elf64_Shdr& section) const;
  const Elf64_Shdr* SymbolSection() const;

  int fd_;
  uint64_t size_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Phdr> segments_;
  std::vector<char> section_names_;
};

}  // namespace trainprof
