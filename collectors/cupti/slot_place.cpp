#include "collectors/cupti/slot_place.h"

#include <stdio.h>
#include <string.h>

namespace trainprof::collectors {
namespace {

constexpr uint64_t kTmpfs = 0x01021994;
// Four times the most that the buffers take: DataLoaders' workers need the rest, and containers have
// 64 MiB of it unless they ask for more.
constexpr uint64_t kLeastFree = 4 * uint64_t{kSlotBytes} * kMostSlots;

bool FolderOf(const char* path, char (&folder)[kMostSlotPath]) {
  const char* const name = strrchr(path, '/');
  const auto length = static_cast<size_t>(name == nullptr ? 0 : name - path);
  if (length == 0 || length >= sizeof folder) return false;
  memcpy(folder, path, length);
  folder[length] = 0;
  return true;
}

}  // namespace

SlotPlace PlaceOn(const FileSystem& recording, const FileSystem* memory) {
  SlotPlace place{};
  const char* const network = NetworkFileSystem(recording.type);
  if (network == nullptr) return place;
  if (memory != nullptr && memory->type == kTmpfs && memory->free_bytes >= kLeastFree) {
    memcpy(place.folder, kSharedMemoryFolder, sizeof kSharedMemoryFolder);
    snprintf(place.why, sizeof place.why, "the recording is on %s", network);
  } else {
    snprintf(place.why, sizeof place.why, "on %s, since %s has less than %d GiB free", network,
             kSharedMemoryFolder, static_cast<int>(kLeastFree >> 30));
  }
  return place;
}

SlotPlace ChooseSlotPlace(const char* segment_path, const char* asked) {
  SlotPlace place{};
  if (asked[0] != 0) {
    snprintf(place.folder, sizeof place.folder, "%s", asked);
    snprintf(place.why, sizeof place.why, "--gpu-buffers %.100s", asked);
    return place;
  }
  char folder[kMostSlotPath];
  FileSystem recording{};
  FileSystem memory{};
  if (!FolderOf(segment_path, folder) || !FileSystemOf(folder, &recording)) return place;
  return PlaceOn(recording, FileSystemOf(kSharedMemoryFolder, &memory) ? &memory : nullptr);
}

}  // namespace trainprof::collectors
