#include "collectors/salvage/slot_files.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "collectors/cupti/slot_file.h"
#include "collectors/cupti/slot_place.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/segments/segment_liveness.h"

namespace trainprof::collectors {
namespace {

namespace fs = std::filesystem;
using recording::Links;
using recording::RecordedFile;
using recording::RecordedFolder;

// The folder that the file names; empty: it holds the buffers itself.
std::string FolderNamedIn(const RecordedFile& file) {
  SlotsElsewhere elsewhere{};
  if (file.bytes != sizeof elsewhere ||
      !recording::ReadFully(file.fd.get(), 0, &elsewhere, sizeof elsewhere) ||
      elsewhere.magic != SlotsElsewhere::kMagic) {
    return {};
  }
  return std::string(elsewhere.folder, strnlen(elsewhere.folder, sizeof elsewhere.folder));
}

// A regular file of that user that has no second name. Anybody may write in such a folder.
Result<RecordedFile> OpenOwned(const RecordedFolder& folder, const std::string& name,
                               uint32_t owner) {
  Result<RecordedFile> file = folder.Read(name);
  struct stat status {};
  if (!file.ok() || (fstat(file.value().fd.get(), &status) == 0 && status.st_uid == owner &&
                     status.st_nlink == 1)) {
    return file;
  }
  return Error{(folder.path() / name).string() + ": belongs to another user"};
}

// SEGMENT.slots that the file is of; empty: it is none, or was never begun.
std::string BesideSegment(const RecordedFile& file) {
  uint64_t magic = 0;
  std::string path(kMostSlotPath, '\0');
  if (!recording::ReadFully(file.fd.get(), offsetof(SlotFileHeader, magic), &magic, sizeof magic) ||
      magic != kSlotFileMagic ||
      !recording::ReadFully(file.fd.get(), offsetof(SlotFileHeader, beside_segment), path.data(),
                            path.size())) {
    return {};
  }
  return path.c_str();
}

bool IsGone(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) != 0 && errno == ENOENT;
}

}  // namespace

Result<FoundSlots> FoundSlots::Find(const RecordedFolder& folder, const std::string& name) {
  Result<RecordedFile> file = folder.Change(name);
  if (!file.ok()) return Error{file.error()};
  FoundSlots found;
  found.file_ = std::move(file).value();
  const std::string there = FolderNamedIn(found.file_);
  if (there.empty()) return found;
  Result<RecordedFolder> elsewhere = recording::OpenFolder(there, Links::kFollow);
  if (!elsewhere.ok()) return Error{elsewhere.error()};
  found.name_there_ = kElsewherePrefix + name;
  file = OpenOwned(elsewhere.value(), found.name_there_, folder.owner());
  if (!file.ok()) return Error{file.error()};
  found.file_ = std::move(file).value();
  found.elsewhere_ = std::move(elsewhere).value();
  return found;
}

void FoundSlots::RemoveElsewhere() const {
  if (elsewhere_) elsewhere_->Remove(name_there_);
}

void RemoveStrandedSlots() {
  const auto memory = recording::OpenFolder(kSharedMemoryFolder, Links::kFollow);
  if (!memory.ok()) return;
  for (const std::string& name : memory.value().Names()) {
    if (!name.starts_with(kElsewherePrefix) || !name.ends_with(kSlotFileSuffix)) continue;
    const std::string of_segment = fs::path(name.substr(strlen(kElsewherePrefix))).stem();
    if (!recording::IsSegmentFile(of_segment) || !recording::IsNamedHere(of_segment)) continue;
    const auto file = OpenOwned(memory.value(), name, geteuid());
    if (!file.ok() || !recording::NobodyWrites(memory.value().path() / name)) continue;
    const std::string wanted_by = BesideSegment(file.value());
    if (wanted_by.empty() || IsGone(wanted_by)) memory.value().Remove(name);
  }
}

}  // namespace trainprof::collectors
