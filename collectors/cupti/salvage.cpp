#include "collectors/cupti/salvage.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "collectors/cupti/converter.h"
#include "collectors/host/adopt.h"
#include "trace/recording/run_directory.h"
#include "trace/recording/segment_liveness.h"
#include "trace/recording/segment_reader.h"

namespace trainprof::collectors {
namespace {

namespace fs = std::filesystem;
using recording::ChunkKind;
using recording::SegmentReader;

// No process defines so many strings: ours do not meet its own.
constexpr uint32_t kFirstOwnString = 1u << 30;

// A slot file, mapped privately: what is noted in it while salvaging stays out of the file.
class SlotFile {
 public:
  explicit SlotFile(const fs::path& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0 && status.st_size >= kSlotBytes) {
      bytes_ = static_cast<uint64_t>(status.st_size);
      map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0) close(fd);
  }
  ~SlotFile() {
    if (map_ != MAP_FAILED) munmap(map_, bytes_);
  }
  SlotFile(const SlotFile&) = delete;
  SlotFile& operator=(const SlotFile&) = delete;

  // nullptr: not a whole file of ours.
  SlotFileHeader* header() const {
    if (map_ == MAP_FAILED) return nullptr;
    auto* header = static_cast<SlotFileHeader*>(map_);
    const bool ours = header->magic == kSlotFileMagic && header->slot_bytes == kSlotBytes &&
                      header->slots <= kMostSlots;
    if (!ours) return nullptr;
    // Those beyond the file were in memory.
    const uint64_t places = bytes_ / kSlotBytes - 1;
    if (header->slots > places) header->slots = static_cast<uint32_t>(places);
    return header;
  }
  const char* Data(uint32_t slot) const {
    return static_cast<const char*>(map_) + uint64_t{kSlotBytes} * (slot + 1);
  }

 private:
  void* map_ = MAP_FAILED;
  uint64_t bytes_ = 0;
};

// What the dead process's writer of rows has left.
struct WriterEnd {
  uint32_t next_sequence = 0;
  bool has_device = false;
  bool has_call = false;
  recording::DeviceRow device{};
  recording::CallRow call{};
};

template <class Row>
bool ReadLast(const SegmentReader& segment, const recording::Chunk& chunk, Row* row) {
  std::vector<uint64_t> words;
  Quality quality;
  const uint32_t rows = chunk.payload_bytes / sizeof(Row);
  if (chunk.row_bytes != sizeof(Row) || rows == 0 || !segment.Load(chunk, words, quality)) {
    return false;
  }
  std::memcpy(static_cast<void*>(row),
              reinterpret_cast<const char*>(words.data()) + (rows - 1) * sizeof(Row), sizeof(Row));
  return true;
}

WriterEnd EndOf(const SegmentReader& segment, uint32_t writer) {
  WriterEnd end;
  for (const recording::Chunk& chunk : segment.chunks()) {  // by sequence: the last one counts
    if (chunk.writer != writer) continue;
    end.next_sequence = std::max(end.next_sequence, chunk.sequence + 1);
    if (chunk.payload_bytes == 0) continue;
    if (chunk.kind == ChunkKind::kDeviceRows) {
      end.has_device = ReadLast(segment, chunk, &end.device);
    } else if (chunk.kind == ChunkKind::kCallRows) {
      end.has_call = ReadLast(segment, chunk, &end.call);
    }
  }
  return end;
}

// Delivered ones in the order of their delivery, then those that CUPTI held.
std::vector<uint32_t> SlotsToRead(SlotFileHeader& header) {
  std::vector<uint32_t> found;
  for (uint32_t i = 0; i < header.slots; ++i) {
    const Slot& slot = header.slot[i];
    const bool rest = slot.done_bytes < slot.valid_bytes && slot.valid_bytes <= kSlotBytes;
    if (slot.state == SlotState::kHeld || (slot.state != SlotState::kFree && rest)) {
      found.push_back(i);
    }
  }
  std::stable_sort(found.begin(), found.end(), [&](uint32_t a, uint32_t b) {
    const auto key = [&](uint32_t i) {
      const Slot& slot = header.slot[i];
      return slot.state == SlotState::kHeld ? INT64_MAX : slot.delivered_ns.load();
    };
    return key(a) < key(b);
  });
  return found;
}

uint64_t MakeRows(const SlotFile& file, SlotFileHeader& header, const WriterEnd& end) {
  RowWriter* writer = RowWriter::Continue(header.writer, end.next_sequence, kFirstOwnString);
  const auto converter = std::make_unique<Converter>();
  if (writer == nullptr) return 0;
  converter->Init(writer, &header, false, nullptr);
  converter->SetLast(end.has_device ? &end.device : nullptr, end.has_call ? &end.call : nullptr);
  for (const uint32_t i : SlotsToRead(header)) {
    Slot& slot = header.slot[i];
    const bool held = slot.state == SlotState::kHeld;
    converter->Convert(file.Data(i), held ? kSlotBytes : slot.valid_bytes.load(), &slot.done_bytes,
                       held);
  }
  const Converter::Counts& counts = converter->counts();
  if (counts.rows > 0) {
    writer->Fact("cupti.salvaged_rows", std::to_string(counts.rows).c_str());
  }
  if (const uint64_t unnamed = counts.unnamed + counts.nameless; unnamed > 0) {
    writer->Fact("cupti.unnamed_kernels", std::to_string(unnamed).c_str());
  }
  writer->Close();
  return counts.rows;
}

// True when the slot file has served its purpose.
bool SalvageFile(const fs::path& run_directory, const fs::path& slots_path, SalvageCounts* counts) {
  const fs::path segment_path = fs::path(slots_path).replace_extension();  // X.tps.slots -> X.tps
  std::error_code error;
  if (!fs::exists(segment_path, error)) return true;  // sealed: a former salvage went before
  Quality quality;
  const auto segment = SegmentReader::Open(segment_path, quality);
  if (!segment.ok() || recording::MayBeAlive(segment.value())) return false;
  const SlotFile file(slots_path);
  SlotFileHeader* header = file.header();
  if (header == nullptr) return true;  // killed before CUPTI got a buffer
  if (header->segment_identity != segment.value().info().identity) return true;
  if (SlotsToRead(*header).empty()) return true;
  const WriterEnd end = EndOf(segment.value(), header->writer);
  if (!AdoptSegment(run_directory.c_str(), segment_path.c_str())) return false;
  counts->rows += MakeRows(file, *header, end);
  ReleaseSegment();
  return true;
}

}  // namespace

SalvageCounts SalvageSlots(const fs::path& run_directory,
                           std::chrono::steady_clock::time_point deadline) {
  SalvageCounts counts;
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(run_directory, error)) {
    if (!folder.is_directory(error)) continue;
    for (const auto& entry : fs::directory_iterator(folder.path(), error)) {
      if (entry.path().extension() == kSlotFileSuffix) found.push_back(entry.path());
    }
  }
  for (const fs::path& path : found) {
    const bool in_time = std::chrono::steady_clock::now() < deadline;
    if (in_time && SalvageFile(run_directory, path, &counts)) {
      fs::remove(path, error);
      ++counts.files;
    } else {
      ++counts.left;
    }
  }
  return counts;
}

}  // namespace trainprof::collectors
