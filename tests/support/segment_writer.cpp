#include "tests/support/segment_writer.h"

#include <cstring>
#include <fstream>

namespace trainprof::testing {

using namespace recording;

namespace {
// As the collector: a chunk that is full is followed by another.
constexpr size_t kMostWords = 256 * 1024 / 8;
}  // namespace

SegmentWriter::SegmentWriter(std::filesystem::path folder, int pid) {
  std::filesystem::create_directories(folder);
  path_ = folder / (std::to_string(pid) + "-1.tps");
  header_.magic = kSegmentMagic;
  header_.version = kFormatVersion;
  header_.header_bytes = kChunkAlignment;
  header_.identity = 0x1234567 + static_cast<uint64_t>(pid);
  header_.clock_kind = ClockKind::kTsc;
  header_.rank = -1;
  header_.pid = pid;
  header_.parent_pid = 1;
  header_.opened = Sample(0);
  header_.closed = Sample(10'000'000'000);
  header_.clean_exit.store(1);
  strcpy(header_.host, "host");
  strcpy(header_.command, "python train.py");
}

ClockSample SegmentWriter::Sample(uint64_t ticks) {
  const auto ns = static_cast<int64_t>(ticks);
  return {ticks, kOriginNs + ns, kRealOffsetNs + kOriginNs + ns, 20};
}

void SegmentWriter::BeginWriter(uint32_t writer, int64_t tid, const char* name) {
  writer_ = writer;
  NewChunk();
  Thread(1, tid, name);
}

void SegmentWriter::NewChunk(uint32_t skip_numbers) {
  next_sequence_[writer_] += skip_numbers;
  records_ = &AddChunk(ChunkKind::kRecords);
  last_ticks_ = 0;
}

SegmentWriter::Chunk& SegmentWriter::AddChunk(ChunkKind kind) {
  Chunk& chunk = chunks_.emplace_back();
  chunk.header.writer = writer_;
  chunk.header.sequence = next_sequence_[writer_]++;
  chunk.header.kind = kind;
  chunk.header.opened = Sample(0);
  return chunk;
}

// The first timed record of a chunk.
bool SegmentWriter::MustBeLong() const {
  return last_ticks_ == 0 || records_->words.size() == kMostWords;
}

void SegmentWriter::Raw(std::vector<uint64_t> added) {
  if (words().size() + added.size() > kMostWords) NewChunk();
  words().insert(words().end(), added.begin(), added.end());
}

void SegmentWriter::Thread(uint64_t ticks, int64_t tid, const char* name) {
  uint64_t text[2] = {};
  memcpy(text, name, strnlen(name, sizeof text));
  Raw({PackHead(RecordType::kThread, 5, 0, 0), ticks, static_cast<uint64_t>(tid), text[0],
       text[1]});
}

uint32_t SegmentWriter::String(const std::string& text) {
  if (text.empty()) return 0;
  const auto [it, is_new] =
      ids_.try_emplace({writer_, text}, static_cast<uint32_t>(ids_.size() + 1));
  if (is_new) {
    std::vector<uint64_t> record(2 + (text.size() + 7) / 8);
    record[0] = PackHead(RecordType::kString, static_cast<uint32_t>(record.size()), 0, it->second);
    record[1] = text.size();
    memcpy(record.data() + 2, text.data(), text.size());
    Raw(record);
  }
  return it->second;
}

void SegmentWriter::Named(RecordType type, const std::string& name, uint64_t ticks, uint32_t domain,
                          std::vector<uint64_t> rest) {
  const uint32_t id = String(name);
  std::vector<uint64_t> record = {
      PackHead(type, static_cast<uint32_t>(2 + rest.size()), domain, id), ticks};
  record.insert(record.end(), rest.begin(), rest.end());
  Raw(record);
  last_ticks_ = ticks;
}

void SegmentWriter::Push(const std::string& name, uint64_t ticks, uint32_t domain,
                         std::vector<uint64_t> attributes) {
  Named(RecordType::kPush, name, ticks, domain, std::move(attributes));
}
void SegmentWriter::Pop(uint64_t ticks, uint32_t domain) {
  Named(RecordType::kPop, "", ticks, domain, {});
}
void SegmentWriter::ShortPush(const std::string& name, uint64_t ticks) {
  const uint32_t id = String(name);
  if (MustBeLong()) return Push(name, ticks);
  Raw({WithTicks(PackShort(RecordType::kShortPush, id), ticks - last_ticks_)});
  last_ticks_ = ticks;
}
void SegmentWriter::ShortPop(uint64_t ticks, uint32_t domain) {
  if (MustBeLong()) return Pop(ticks, domain);
  Raw({WithTicks(PackShort(RecordType::kShortPop, domain), ticks - last_ticks_)});
  last_ticks_ = ticks;
}
void SegmentWriter::Start(const std::string& name, uint64_t ticks, uint64_t id) {
  Named(RecordType::kStart, name, ticks, 0, {id});
}
void SegmentWriter::End(uint64_t ticks, uint64_t id) {
  Named(RecordType::kEnd, "", ticks, 0, {id});
}
void SegmentWriter::Range(const std::string& name, uint64_t begin, uint64_t end,
                          const std::string& stack) {
  const uint32_t name_id = String(name);
  const uint32_t stack_id = String(stack);
  Raw({PackHead(RecordType::kRange, 5, 0, name_id), end, begin + kOriginNs, end + kOriginNs,
       stack_id});
}
void SegmentWriter::Mark(const std::string& name, uint64_t ticks, std::vector<uint64_t> attributes,
                         uint32_t domain) {
  Named(RecordType::kMark, name, ticks, domain, std::move(attributes));
}
void SegmentWriter::Domain(uint32_t domain, const std::string& name) {
  const uint32_t id = String(name);
  Raw({PackHead(RecordType::kDomain, 2, domain, id), 0});
}
void SegmentWriter::Category(uint32_t domain, uint32_t category, const std::string& name) {
  const uint32_t id = String(name);
  Raw({PackHead(RecordType::kCategory, 2, domain, id), category});
}
void SegmentWriter::ThreadName(int64_t tid, const std::string& name) {
  const uint32_t id = String(name);
  Raw({PackHead(RecordType::kThreadName, 2, 0, id), static_cast<uint64_t>(tid)});
}
void SegmentWriter::Gap(uint64_t begin, uint64_t end, GapReason reason) {
  const auto domain = static_cast<uint32_t>(reason);
  Raw({PackHead(RecordType::kGapBegin, 2, domain, 0), begin});
  if (end != 0) Raw({PackHead(RecordType::kGapEnd, 2, domain, 0), end});
}

namespace {
template <class Facts>
std::vector<uint64_t> RecordOf(RecordType type, uint32_t id, const Facts& facts) {
  std::vector<uint64_t> record(1 + sizeof facts / 8);
  record[0] = PackHead(type, static_cast<uint32_t>(record.size()), 0, id);
  memcpy(record.data() + 1, &facts, sizeof facts);
  return record;
}
}  // namespace

void SegmentWriter::Fact(const std::string& key, const std::string& value) {
  const uint32_t key_id = String(key);
  const uint32_t value_id = String(value);
  Raw({PackHead(RecordType::kFact, 2, 0, key_id), value_id});
}
void SegmentWriter::Device(const DeviceFacts& facts, const std::string& name) {
  const uint32_t id = String(name);
  Raw(RecordOf(RecordType::kDevice, id, facts));
  Raw({PackHead(RecordType::kContext, 2, 0, 0), uint64_t{facts.ordinal} << 32 | 1});
}
void SegmentWriter::Stream(uint32_t context, uint32_t stream, int64_t priority) {
  Raw({PackHead(RecordType::kStream, 3, 0, 0), uint64_t{stream} << 32 | context,
       static_cast<uint64_t>(priority)});
}
void SegmentWriter::Module(const ModuleFacts& facts, const std::string& path) {
  const uint32_t id = String(path);
  Raw(RecordOf(RecordType::kModule, id, facts));
}
void SegmentWriter::Stack(uint32_t id, const std::vector<uint64_t>& frames) {
  std::vector<uint64_t> record = {
      PackHead(RecordType::kStack, static_cast<uint32_t>(1 + frames.size()), 0, id)};
  record.insert(record.end(), frames.begin(), frames.end());
  Raw(record);
}
void SegmentWriter::CallStack(uint32_t id, uint32_t correlation, CallDomain domain,
                              const std::string& script) {
  const uint32_t text = script.empty() ? 0 : String(script);
  Raw({PackHead(RecordType::kCallStack, 4, 0, id), 1000,
       correlation | static_cast<uint64_t>(domain) << 32, text});
}
void SegmentWriter::NameStack(const std::string& name, uint32_t stack, const std::string& script) {
  const uint64_t text = script.empty() ? 0 : String(script);
  Raw({PackHead(RecordType::kNameStack, 2, 0, String(name)), stack | text << 32});
}
void SegmentWriter::Schema(uint64_t number, const PayloadSchema& schema, uint32_t domain) {
  std::vector<uint64_t> record = {
      0, number,
      schema.static_bytes | uint64_t{schema.packing} << 32 | uint64_t{schema.type} << 48};
  for (const PayloadField& field : schema.fields) {
    record.push_back(field.type | uint64_t{field.flags} << 48);
    record.push_back(field.offset | uint64_t{field.detail} << 32);
    record.push_back(String(field.name));
  }
  record[0] = PackHead(RecordType::kPayloadSchema, static_cast<uint32_t>(record.size()), domain, 0);
  Raw(record);
}
void SegmentWriter::Enum(uint64_t number, const PayloadEnum& type, uint32_t domain) {
  std::vector<uint64_t> record = {0, number, type.value_bytes};
  for (const PayloadEnum::Entry& entry : type.entries) {
    record.push_back(entry.value);
    record.push_back(String(entry.name) | uint64_t{entry.is_flag} << 32);
  }
  record[0] = PackHead(RecordType::kPayloadEnum, static_cast<uint32_t>(record.size()), domain, 0);
  Raw(record);
}
void SegmentWriter::Payload(uint64_t schema, std::string_view bytes) {
  std::vector<uint64_t> record(3 + (bytes.size() + 7) / 8);
  record[0] = PackHead(RecordType::kPayload, static_cast<uint32_t>(record.size()), 0, 0);
  record[1] = schema;
  record[2] = bytes.size();
  memcpy(record.data() + 3, bytes.data(), bytes.size());
  Raw(record);
}
void SegmentWriter::Row(const DeviceRow& row) {
  RawRow(ChunkKind::kDeviceRows, sizeof row, &row, sizeof row);
}
void SegmentWriter::Row(const CallRow& row) {
  RawRow(ChunkKind::kCallRows, sizeof row, &row, sizeof row);
}

void SegmentWriter::RawRow(ChunkKind kind, uint16_t row_bytes, const void* row, size_t bytes) {
  Chunk* chunk = nullptr;
  for (Chunk& c : chunks_) {
    const ChunkHeader& h = c.header;
    if (h.writer == writer_ && h.kind == kind && h.row_bytes == row_bytes) chunk = &c;
  }
  if (chunk == nullptr || chunk->words.size() + bytes / 8 > kMostWords) {
    chunk = &AddChunk(kind);
    chunk->header.row_bytes = row_bytes;
  }
  const auto* words = static_cast<const uint64_t*>(row);
  chunk->words.insert(chunk->words.end(), words, words + bytes / 8);
}

uint32_t SegmentWriter::SizeOf(const Chunk& chunk) {
  const uint64_t bytes = sizeof(ChunkHeader) + chunk.words.size() * 8;
  return static_cast<uint32_t>((bytes + kChunkAlignment - 1) / kChunkAlignment * kChunkAlignment);
}

void SegmentWriter::Finish() {
  uint64_t claimed = kChunkAlignment;
  for (const Chunk& chunk : chunks_) claimed += SizeOf(chunk);
  header_.next_offset.store(claimed);
  header_.whole_bytes.store(claimed);
  header_.static_check = CheckOf(&header_, offsetof(SegmentHeader, static_check));
  // Removed first: ext4 writes a file that is truncated and written anew to the disk at once.
  std::filesystem::remove(path_);
  std::ofstream file(path_, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header_), sizeof header_);
  uint64_t offset = kChunkAlignment;
  for (Chunk& chunk : chunks_) {
    ChunkHeader& h = chunk.header;
    const uint64_t bytes = chunk.words.size() * 8;
    h.magic = kChunkMagic;
    h.identity = header_.identity;
    h.file_offset = offset;
    h.size_bytes = SizeOf(chunk);
    h.static_check = CheckOf(&h, offsetof(ChunkHeader, static_check));
    h.committed.store(bytes);
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&h), sizeof h);
    file.write(reinterpret_cast<const char*>(chunk.words.data()),
               static_cast<std::streamsize>(bytes));
    offset += h.size_bytes;
  }
  file.seekp(static_cast<std::streamoff>(offset - 1));
  file.put(0);
}

}  // namespace trainprof::testing
