#include "collectors/unwind/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include <atomic>

#include "collectors/core/system.h"

namespace trainprof::collectors {
namespace {

using recording::ModuleFacts;

constexpr size_t kMostPath = 4096;

// Which objects are in the recording already. Zeros are its empty state; lock-free.
struct ModuleSet {
  static constexpr uint32_t kPlaces = 1024;
  std::atomic<uint64_t> keys[kPlaces];

  // True for one caller: it is to write the record.
  bool Add(uint64_t key);
};

constinit std::atomic<ModuleSet*> g_known{nullptr};

// From the object's notes in memory: "GNU", type 3.
void ReadBuildId(const char* notes, size_t size, ModuleFacts* facts) {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    ElfW(Nhdr) note;
    memcpy(&note, notes + at, sizeof note);
    const size_t name_at = at + sizeof note;
    const size_t data_at = name_at + (note.n_namesz + 3) / 4 * 4;
    const size_t next = data_at + (note.n_descsz + 3) / 4 * 4;
    if (next > size || next <= at) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        memcmp(notes + name_at, "GNU", 4) == 0) {
      const size_t bytes =
          note.n_descsz < sizeof facts->build_id ? note.n_descsz : sizeof facts->build_id;
      memcpy(facts->build_id, notes + data_at, bytes);
      facts->build_id_bytes = static_cast<uint32_t>(bytes);
    }
    at = next;
  }
}

}  // namespace

// The program headers are read from the mapped file, not through dl_iterate_phdr: that takes the
// loader's lock.
bool DescribeModule(const LoadedObject& object, uint64_t address, ModuleFacts* facts) {
  ElfW(Ehdr) elf;
  memcpy(&elf, reinterpret_cast<const void*>(object.file_start), sizeof elf);
  if (memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0 || elf.e_phentsize != sizeof(ElfW(Phdr))) {
    return false;
  }
  const uint64_t headers = object.file_start + elf.e_phoff;
  if (headers + uint64_t{elf.e_phnum} * sizeof(ElfW(Phdr)) > object.end) return false;
  bool found = false;
  for (int i = 0; i < elf.e_phnum; ++i) {
    ElfW(Phdr) header;
    memcpy(&header, reinterpret_cast<const void*>(headers + i * sizeof header), sizeof header);
    const uint64_t begin = object.load_bias + header.p_vaddr;
    if (header.p_type == PT_NOTE && begin + header.p_memsz <= object.end) {
      ReadBuildId(reinterpret_cast<const char*>(begin), header.p_memsz, facts);
    }
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0 || address < begin ||
        address >= begin + header.p_memsz) {
      continue;
    }
    facts->begin = begin;
    facts->end = begin + header.p_memsz;
    facts->file_offset = header.p_offset;
    facts->load_bias = object.load_bias;
    found = true;
  }
  return found;
}

namespace {

void WriteModule(const LoadedObject& object, uint64_t address, ThreadWriter& writer) {
  ModuleFacts facts{};
  if (!DescribeModule(object, address, &facts)) return;
  char path[kMostPath];
  const char* name = object.path;
  if (name[0] == 0) {
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) return;
    path[length] = 0;
    name = path;
  }
  writer.Module(name, facts);
}

bool ModuleSet::Add(uint64_t key) {
  if (key == 0) return false;
  const uint64_t hash = key * 0x9E3779B97F4A7C15 >> 40;
  for (uint32_t i = 0; i < kPlaces; ++i) {
    std::atomic<uint64_t>& place = keys[(hash + i) % kPlaces];
    uint64_t found = place.load(std::memory_order_relaxed);
    if (found == key) return false;
    if (found == 0 && place.compare_exchange_strong(found, key)) return true;
    if (found == key) return false;
  }
  return false;
}

}  // namespace

bool PrepareModules() {
  if (g_known.load(std::memory_order_acquire) != nullptr) return true;
  void* made = AllocatePagesWipedInChild(sizeof(ModuleSet));
  ModuleSet* none = nullptr;
  if (made != nullptr && !g_known.compare_exchange_strong(none, static_cast<ModuleSet*>(made))) {
    ReleasePages(made, sizeof(ModuleSet));
  }
  return made != nullptr;
}

void WriteModules(const Frames& frames, ThreadWriter& writer) {
  ModuleSet& known = *g_known.load(std::memory_order_acquire);
  uint64_t begin = 0;
  uint64_t end = 0;
  for (uint32_t i = 0; i < frames.count; ++i) {
    const uint64_t address = frames.address[i] - 1;  // of the call, not of what follows
    if (address >= begin && address < end) continue;
    LoadedObject object;
    if (!FindObject(address, &object)) continue;
    begin = object.file_start;
    end = object.end;
    // Another file may be loaded where one was unloaded.
    const uint64_t key = object.file_start ^ MakeText(object.path).hash;
    if (known.Add(key)) WriteModule(object, address, writer);
  }
}

}  // namespace trainprof::collectors
