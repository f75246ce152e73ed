// Where the buffers that CUPTI is given lie (collectors/cupti/slot_place.h).
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>

#include "collectors/core/system.h"
#include "collectors/cupti/slot_place.h"
#include "collectors/cupti/slot_ring.h"
#include "tests/support/scratch_folder.h"

namespace trainprof::collectors {
namespace {

namespace fs = std::filesystem;
using trainprof::testing::ScratchFolder;

TEST(CuptiSlotPlace, FileSystemsOfServersAreKnownByTheirNumbers) {
  EXPECT_STREQ(NetworkFileSystem(NFS_SUPER_MAGIC), "NFS");
  EXPECT_STREQ(NetworkFileSystem(SMB2_SUPER_MAGIC), "SMB");
  EXPECT_STREQ(NetworkFileSystem(CIFS_SUPER_MAGIC), "CIFS");
  EXPECT_STREQ(NetworkFileSystem(FUSE_SUPER_MAGIC), "FUSE");
  EXPECT_STREQ(NetworkFileSystem(CEPH_SUPER_MAGIC), "Ceph");
  EXPECT_STREQ(NetworkFileSystem(V9FS_MAGIC), "9P");
  EXPECT_STREQ(NetworkFileSystem(0x0BD00BD0), "Lustre");  // LL_SUPER_MAGIC of lustre_user.h
  EXPECT_STREQ(NetworkFileSystem(0x47504653), "GPFS");    // "GPFS"
  for (const uint64_t local :
       {uint64_t{EXT4_SUPER_MAGIC}, uint64_t{XFS_SUPER_MAGIC}, uint64_t{BTRFS_SUPER_MAGIC},
        uint64_t{TMPFS_MAGIC}, uint64_t{OVERLAYFS_SUPER_MAGIC}, uint64_t{F2FS_SUPER_MAGIC}}) {
    EXPECT_EQ(NetworkFileSystem(local), nullptr) << std::hex << local;
  }
}

TEST(CuptiSlotPlace, IsMemoryOnANetworkFileSystemWhereThatLeavesOthersRoom) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const FileSystem lustre = {0x0BD00BD0, 0};
  const FileSystem memory = {TMPFS_MAGIC, kGiB};
  const SlotPlace there = PlaceOn(lustre, &memory);
  EXPECT_STREQ(there.folder, "/dev/shm");
  EXPECT_STREQ(there.why, "the recording is on Lustre");
  const FileSystem full = {TMPFS_MAGIC, kGiB - 1};
  const FileSystem disk = {EXT4_SUPER_MAGIC, 100 * kGiB};
  for (const FileSystem* no : {&full, &disk, static_cast<const FileSystem*>(nullptr)}) {
    const SlotPlace beside = PlaceOn(lustre, no);
    EXPECT_STREQ(beside.folder, "");
    EXPECT_STREQ(beside.why, "on Lustre, since /dev/shm has less than 1 GiB free");
  }
  EXPECT_STREQ(PlaceOn(disk, &memory).folder, "");
  EXPECT_STREQ(PlaceOn(disk, &memory).why, "");
}

// CIFS's number has the highest of 32 bits set.
TEST(CuptiSlotPlace, AFolderTellsItsFileSystem) {
  FileSystem found{};
  ASSERT_TRUE(FileSystemOf("/proc", &found));
  EXPECT_EQ(found.type, uint64_t{PROC_SUPER_MAGIC});
  EXPECT_FALSE(FileSystemOf("/nowhere", &found));
}

TEST(CuptiSlotPlace, IsBesideTheSegmentUnlessAskedOtherwise) {
  const ScratchFolder scratch;
  FileSystem here{};
  ASSERT_TRUE(FileSystemOf(scratch.path().c_str(), &here));
  if (NetworkFileSystem(here.type) == nullptr) {
    const SlotPlace place = ChooseSlotPlace((scratch / "segment").c_str(), "");
    EXPECT_STREQ(place.folder, "");
    EXPECT_STREQ(place.why, "");
  }
  const SlotPlace asked = ChooseSlotPlace((scratch / "segment").c_str(), "/else/where");
  EXPECT_STREQ(asked.folder, "/else/where");
  EXPECT_STREQ(asked.why, "--gpu-buffers /else/where");
}

class CuptiSlotPlaced : public ::testing::Test {
 protected:
  void Open(const fs::path& folder) {
    int error = 0;
    EXPECT_TRUE(ring_->Open(segment_.c_str(), folder.c_str(), &error)) << error;
    EXPECT_TRUE(ring_->is_file());
    EXPECT_NE(ring_->Take(true), nullptr);
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(lstat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  }

  ScratchFolder scratch_;
  fs::path segment_ = scratch_ / "7-8-9.tps";
  fs::path beside_ = scratch_ / "7-8-9.tps.slots";
  std::unique_ptr<SlotRing> ring_ = std::make_unique<SlotRing>();  // of zeros
};

TEST_F(CuptiSlotPlaced, ElsewhereTheyAreTheOwnersAloneAndNamedBesideTheSegment) {
  const ScratchFolder memory;
  const mode_t umask_before = umask(0);
  Open(memory.path());
  umask(umask_before);
  const fs::path there = memory / "trainprof-7-8-9.tps.slots";
  EXPECT_EQ(ring_->path(), there);
  EXPECT_EQ(ModeOf(there), 0600u);
  EXPECT_EQ(fs::file_size(there) % kSlotBytes, 0u);
  EXPECT_EQ(ring_->header()->beside_segment, beside_.string());
  SlotsElsewhere named{};
  ASSERT_EQ(fs::file_size(beside_), sizeof named);
  std::ifstream(beside_).read(reinterpret_cast<char*>(&named), sizeof named);
  EXPECT_EQ(named.magic, SlotsElsewhere::kMagic);
  EXPECT_EQ(named.folder, memory.path().string());
}

TEST_F(CuptiSlotPlaced, WhereThatCannotBeTheyAreBesideTheSegment) {
  Open(scratch_ / "missing");
  EXPECT_EQ(ring_->path(), beside_);
  EXPECT_GE(fs::file_size(beside_), uint64_t{kSlotBytes});
  EXPECT_STREQ(ring_->header()->beside_segment, "");
}

// Anybody may write into /dev/shm.
TEST_F(CuptiSlotPlaced, WhatHasTheNameAlreadyIsNotTouched) {
  const ScratchFolder memory;
  const fs::path victim = scratch_ / "victim";
  std::ofstream(victim) << "theirs";
  fs::create_symlink(victim, memory / "trainprof-7-8-9.tps.slots");
  Open(memory.path());
  EXPECT_EQ(ring_->path(), beside_);
  EXPECT_EQ(fs::file_size(victim), 6u);
  EXPECT_TRUE(fs::is_symlink(memory / "trainprof-7-8-9.tps.slots"));
}

}  // namespace
}  // namespace trainprof::collectors
