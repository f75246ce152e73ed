#include "collectors/python/call_site.h"

#include <string.h>

#include "collectors/core/system.h"
#include "collectors/python/own_stack.h"
#include "trace/recording/wire/format.h"

namespace trainprof::collectors {
namespace {

constexpr uint32_t kMostFolders = 8;
constexpr uint32_t kMostFrames = 24;  // of a stack that is kept
constexpr uint32_t kSlots = 8192;
constexpr uint32_t kMostSites =
    kSlots / 2;  // programs that make code as they go must not fill memory

constinit const Text* g_folders[kMostFolders] = {};
constinit uint32_t g_folder_count = 0;

// Whether code is a library's, of functions that were met last.
struct KnownCode {
  OwnCode code;
  bool is_passed_over;
};
constinit KnownCode g_codes[256] = {};

struct Site {
  uint64_t hash;  // of the name, the function and the instruction
  const Place* place;
};
constinit Site* g_sites = nullptr;
constinit uint32_t g_site_count = 0;

uint64_t Mixed(uint64_t hash, const void* value) {
  hash = (hash ^ reinterpret_cast<uintptr_t>(value)) * 0x9E3779B97F4A7C15;
  return hash ^ hash >> 29;
}

bool LiesInALibrary(const OwnCode& code) {
  char file[kMostPathBytes];
  const uint32_t length = SpellFile(code, file);
  for (uint32_t i = 0; i < g_folder_count; ++i) {
    const Text& folder = *g_folders[i];
    if (length >= folder.length && memcmp(file, folder.data, folder.length) == 0) return true;
  }
  return false;
}

bool PassesOver(const OwnCode& code) {
  KnownCode& known = g_codes[Mixed(0, code.object) % (sizeof g_codes / sizeof *g_codes)];
  if (known.code.object != code.object || known.code.name != code.name ||
      known.code.lines != code.lines || known.code.file != code.file) {
    known = {code, LiesInALibrary(code)};
  }
  return known.is_passed_over;
}

const Place* NewSite(const Place& name) {
  OwnStack stack;
  char text[recording::kMaxStringBytes];
  if (!ReadOwnStackFrom(PassesOver, kMostFrames, &stack)) return nullptr;
  const uint32_t bytes = SpellStack(stack, text, sizeof text);
  return RegisterPlace(*name.name, MakeText(text, bytes, false));
}

}  // namespace

void PassOver(const Text& folder) {
  const Text* const known = RegisterString(folder);
  if (known == nullptr || g_folder_count == kMostFolders) return;
  g_folders[g_folder_count++] = known;
  memset(g_codes, 0, sizeof g_codes);
}

const Place* SiteOf(const Place* name) {
  if (!KnowsOwnStacks()) return nullptr;
  OwnStack innermost;
  if (name == nullptr || !ReadOwnStackFrom(PassesOver, 1, &innermost)) return name;
  if (g_sites == nullptr) g_sites = static_cast<Site*>(AllocatePages(kSlots * sizeof(Site)));
  if (g_sites == nullptr) return name;
  const uint64_t hash = Mixed(innermost.hash, name) | 1;
  uint64_t slot = hash % kSlots;
  for (; g_sites[slot].hash != 0; slot = (slot + 1) % kSlots) {
    if (g_sites[slot].hash == hash) return g_sites[slot].place;
  }
  if (g_site_count == kMostSites) return name;
  const Place* const place = NewSite(*name);
  if (place == nullptr) return name;
  ++g_site_count;
  g_sites[slot] = {hash, place};
  return place;
}

}  // namespace trainprof::collectors
