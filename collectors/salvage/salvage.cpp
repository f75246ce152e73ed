#include "collectors/salvage/salvage.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectors/cupti/converter.h"
#include "collectors/salvage/adopt.h"
#include "collectors/salvage/slot_files.h"
#include "trace/recording/files/recorded_files.h"
#include "trace/recording/files/run_directory.h"
#include "trace/recording/segments/segment_liveness.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/wire/facts.h"

namespace trainprof::collectors {
namespace {

namespace fs = std::filesystem;
using recording::ChunkKind;
using recording::Links;
using recording::RecordedFolder;
using recording::SegmentReader;

// CUPTI's records are multiples of 8 bytes. Smaller ones than any of them would make many rows of
// few bytes.
constexpr uint32_t kLeastRecordBytes = 16;
bool IsRecordSize(uint32_t bytes) { return bytes >= kLeastRecordBytes && bytes % 8 == 0; }

// No process defines so many strings: ours do not meet its own.
constexpr uint32_t kFirstOwnString = 1u << 30;

// A slot file, mapped privately: what is noted in it while salvaging stays out of the file.
class SlotFile {
 public:
  explicit SlotFile(const recording::RecordedFile& file) {
    constexpr uint64_t kMostBytes = uint64_t{kSlotBytes} * (kMostSlots + 1);
    bytes_ = std::min(file.bytes, kMostBytes);
    if (bytes_ < kSlotBytes) return;
    map_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE, file.fd.get(), 0);
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
    for (uint32_t& bytes : header->record_bytes) {
      if (!IsRecordSize(bytes)) bytes = 0;
    }
    return header;
  }
  // The collector had made it and was killed before it had a header.
  bool HasNotBegun() const {
    return map_ == MAP_FAILED || static_cast<const SlotFileHeader*>(map_)->magic == 0;
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

// Delivered ones in the order of their delivery, then those that CUPTI held, as it asked for them: a
// thread's records go on in the next one.
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
      const bool held = slot.state == SlotState::kHeld;
      return std::pair(held, held ? slot.held_ns.load() : slot.delivered_ns.load());
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
    converter->Convert(file.Data(i),
                       held ? kSlotBytes : std::min(slot.valid_bytes.load(), kSlotBytes),
                       &slot.done_bytes, held ? std::max<int64_t>(slot.held_ns, 1) : 0);
  }
  int64_t alive_ns = std::max(header.alive_ns.load(), converter->last_end_ns());
  for (const OpenCall& call : header.open_calls.call) {
    if (call.thread != 0) alive_ns = std::max(alive_ns, call.begin_ns.load());
  }
  converter->WriteWaiting();
  converter->EndOpenCalls(alive_ns);
  const Converter::Counts& counts = converter->counts();
  if (counts.under_way > 0) {
    writer->Fact(fact::kCuptiUnderWay, std::to_string(counts.under_way).c_str());
  }
  if (counts.rows > 0) {
    writer->Fact(fact::kCuptiSalvagedRows, std::to_string(counts.rows).c_str());
  }
  if (const uint64_t unnamed = counts.unnamed + counts.nameless; unnamed > 0) {
    writer->Fact(fact::kCuptiUnnamedKernels, std::to_string(unnamed).c_str());
  }
  writer->Close();
  return counts.rows;
}

// The identity of the segment beside the slot file, sealed by now; 0 where there is none.
uint64_t SealedIdentity(const RecordedFolder& folder, const fs::path& segment) {
  const fs::path sealed = fs::path(segment).replace_extension(recording::kSealedSuffix);
  Quality ignored;
  const auto reader = SegmentReader::Open(folder.path() / sealed, ignored);
  return reader.ok() ? reader.value().info().identity : 0;
}

bool AnyWaits(const SlotFileHeader& header) {
  for (const ApiRecord& call : header.waiting_calls) {
    if (call.kind != 0) return true;
  }
  return false;
}

// True when the slot file has served its purpose. All that is not surely of a dead process of this
// run stays as it is.
bool SalvageFile(const RecordedFolder& run, const RecordedFolder& folder, const std::string& name,
                 const FoundSlots& slots, SalvageCounts* counts) {
  const fs::path segment = fs::path(name).replace_extension();  // X.tps.slots -> X.tps
  if (!recording::IsSegmentFile(segment)) return false;
  const SlotFile file(slots.file());
  SlotFileHeader* header = file.header();
  if (!folder.Has(segment)) {  // sealed: a former salvage went before
    return header != nullptr && header->segment_identity != 0 &&
           header->segment_identity == SealedIdentity(folder, segment);
  }
  if (recording::MayBeAlive(folder.path() / segment)) return false;
  Quality quality;
  const auto reader = SegmentReader::Open(folder.path() / segment, quality);
  if (!reader.ok()) return false;
  if (header == nullptr) return file.HasNotBegun();
  if (header->segment_identity != reader.value().info().identity) return false;
  if (SlotsToRead(*header).empty() && !AnyWaits(*header) &&
      (header->open_calls_told != 0 || header->open_calls.IsEmpty())) {
    return true;
  }
  const WriterEnd end = EndOf(reader.value(), header->writer);
  const auto to_change = folder.Change(segment);
  if (!to_change.ok() || !AdoptSegment(run.fd(), to_change.value().fd.get())) return false;
  counts->rows += MakeRows(file, *header, end);
  ReleaseSegment();
  return true;
}

}  // namespace

bool IsSlotFile(const std::string& name) { return fs::path(name).extension() == kSlotFileSuffix; }

SalvageCounts SalvageSlots(const fs::path& run_directory,
                           std::chrono::steady_clock::time_point deadline) {
  SalvageCounts counts;
  const auto run = recording::OpenFolder(run_directory, Links::kFollow);
  if (!run.ok()) return counts;
  for (const std::string& folder_name : run.value().Names()) {
    if (!recording::IsRankFolderName(folder_name)) continue;
    const auto folder = run.value().Enter(folder_name);
    if (!folder.ok()) continue;
    const uint32_t owner = folder.value().owner();
    const bool is_ours = owner == run.value().owner() || owner == geteuid();
    for (const std::string& name : folder.value().Names()) {
      if (!IsSlotFile(name)) continue;
      const bool in_time = std::chrono::steady_clock::now() < deadline;
      const auto found = FoundSlots::Find(folder.value(), name);
      if (is_ours && in_time && found.ok() &&
          SalvageFile(run.value(), folder.value(), name, found.value(), &counts)) {
        folder.value().Remove(name);
        found.value().RemoveElsewhere();
        ++counts.files;
      } else {
        ++counts.left;
      }
    }
  }
  return counts;
}

}  // namespace trainprof::collectors
