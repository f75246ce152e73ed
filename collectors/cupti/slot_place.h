// Where the file of CUPTI's buffers lies: beside the segment, as all of a recording; or in memory
// (/dev/shm) where the recording is on a network file system, on which a write into a mapped page may
// wait for a server: the thread that waits would be one that launches kernels.
//
// Disks need no such care: of 450,000 writes into a file on ext4 that was written back every 5 s 123 took
// more than 10 us, the longest 81 us (8 ms beside a checkpoint of 3 GB); in /dev/shm 3, and 64 us. What
// lies in /dev/shm is taken from what a DataLoader's workers have there, and cannot be written out when
// memory is short.
#pragma once

#include <cstdint>

#include "collectors/core/system.h"
#include "collectors/cupti/slot_file.h"

namespace trainprof::collectors {

inline constexpr char kSharedMemoryFolder[] = "/dev/shm";

struct SlotPlace {
  char folder[kMostFolderPath];  // "": beside the segment
  char why[128];                 // in words; "": it is where it belongs
};

// The name of a file system that a server or a program serves, by statfs's f_type; else nullptr.
constexpr const char* NetworkFileSystem(uint64_t type) {
  struct Known {
    uint32_t type;
    const char* name;
  };
  // linux/magic.h, and of those that are not in Linux itself what their own sources or coreutils' stat say.
  constexpr Known kKnown[] = {
      {0x6969, "NFS"},          {0x517B, "SMB"},      {0xFF534D42, "CIFS"},  {0xFE534D42, "SMB"},
      {0x0BD00BD0, "Lustre"},   {0x47504653, "GPFS"}, {0x65735546, "FUSE"},  {0x00C36400, "Ceph"},
      {0x5346414F, "AFS"},      {0x6B414653, "AFS"},  {0x73757245, "Coda"},  {0x01021997, "9P"},
      {0x19830326, "BeeGFS"},   {0x01161970, "GFS2"}, {0x7461636F, "OCFS2"}, {0xAAD7AAEA, "PanFS"},
      {0x20030528, "OrangeFS"},
  };
  for (const Known& known : kKnown) {
    if (known.type == type) return known.name;
  }
  return nullptr;
}

// On file systems such as these. `memory`: /dev/shm's, nullptr where there is none.
SlotPlace PlaceOn(const FileSystem& recording, const FileSystem* memory);

// `asked`: the folder that the user wants, or "".
SlotPlace ChooseSlotPlace(const char* segment_path, const char* asked);

}  // namespace trainprof::collectors
