#include "tests/collectors/recorded_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "trace/recording/files/run_directory.h"
#include "trace/recording/segments/segment_reader.h"

namespace trainprof::testing {
namespace {

using recording::RecordType;

// The strings and stacks of one writer.
struct WriterIds {
  std::map<uint32_t, uint32_t> names;  // id -> index of RecordedRows::names
  std::map<uint32_t, std::vector<uint64_t>> stacks;
};

void ReadRecord(const recording::RecordHead& head, const uint64_t* words, WriterIds& ids,
                RecordedRows& rows) {
  const auto name = [&](uint32_t id) { return rows.names[ids.names[id]]; };
  switch (head.type) {
    case RecordType::kString: {
      const uint64_t length = words[1] & ~recording::kStringTruncated;
      ids.names[head.id] = static_cast<uint32_t>(rows.names.size());
      rows.names.emplace_back(reinterpret_cast<const char*>(words + 2), length);
      break;
    }
    case RecordType::kFact:
      rows.facts[name(head.id)] = name(static_cast<uint32_t>(words[1]));
      break;
    case RecordType::kStack:
      ids.stacks[head.id].assign(words + 1, words + head.words);
      break;
    case RecordType::kCallStack:
      rows.stacks.push_back({static_cast<uint32_t>(words[2]),
                             static_cast<recording::CallDomain>(words[2] >> 32),
                             ids.stacks[head.id]});
      break;
    case RecordType::kModule: {
      RecordedModule module{name(head.id), {}};
      std::memcpy(&module.facts, words + 1, sizeof module.facts);
      rows.modules.push_back(module);
      break;
    }
    case RecordType::kDevice: {
      recording::DeviceFacts facts{};
      std::memcpy(&facts, words + 1, sizeof facts);
      rows.devices.push_back(facts);
      break;
    }
    case RecordType::kPayloadSchema:
      for (uint32_t at = 3; at + 3 <= head.words; at += 3) {
        rows.schemas[words[1]].push_back({name(static_cast<uint32_t>(words[at + 2])),
                                          static_cast<uint32_t>(words[at]),
                                          static_cast<uint32_t>(words[at + 1])});
      }
      break;
    case RecordType::kPayload: {
      const char* bytes = reinterpret_cast<const char*>(words + 3);
      rows.payloads.push_back({words[1], {bytes, bytes + words[2]}, RecordType::kNone});
      break;
    }
    case RecordType::kContext:
      ++rows.contexts;
      break;
    case RecordType::kGapBegin:
    case RecordType::kGapEnd:
      if (head.domain == static_cast<uint32_t>(recording::GapReason::kDevice)) {
        ++(head.type == RecordType::kGapBegin ? rows.gaps_begun : rows.gaps_ended);
      }
      if (head.domain == static_cast<uint32_t>(recording::GapReason::kLent)) {
        EXPECT_EQ(head.type == RecordType::kGapBegin, rows.lent_ticks.size() % 2 == 0);
        rows.lent_ticks.push_back(words[1]);
      }
      break;
    default:
      break;
  }
}

void ReadRecords(const std::vector<uint64_t>& words, WriterIds& ids, RecordedRows& rows) {
  for (size_t at = 0; at < words.size();) {
    if (recording::IsShort(words[at])) {
      ++at;
      continue;
    }
    const recording::RecordHead head = recording::UnpackHead(words[at]);
    if (head.words < 2 || head.words > words.size() - at) {
      ++rows.damaged;
      return;
    }
    if (!rows.payloads.empty() && rows.payloads.back().event == RecordType::kNone) {
      rows.payloads.back().event = head.type;
    }
    ReadRecord(head, &words[at], ids, rows);
    at += head.words;
  }
}

template <class Row>
void AppendRows(const std::vector<uint64_t>& words, const WriterIds& ids, std::vector<Row>& out) {
  const size_t count = words.size() * 8 / sizeof(Row);
  for (size_t i = 0; i < count; ++i) {
    Row row;
    std::memcpy(static_cast<void*>(&row),
                reinterpret_cast<const char*>(words.data()) + i * sizeof row, sizeof row);
    const auto name = ids.names.find(row.name);
    row.name = name == ids.names.end() ? 0 : name->second;
    out.push_back(row);
  }
}

RecordedRows ReadSegment(const std::filesystem::path& path) {
  RecordedRows rows;
  rows.names.push_back("");
  Quality quality;
  const auto segment = recording::SegmentReader::Open(path, quality);
  EXPECT_TRUE(segment.ok()) << (segment.ok() ? "" : segment.error());
  if (!segment.ok()) return rows;
  std::map<uint32_t, WriterIds> writers;
  std::vector<uint64_t> words;
  for (const bool records : {true, false}) {
    for (const recording::Chunk& chunk : segment.value().chunks()) {
      if ((chunk.kind == recording::ChunkKind::kRecords) != records) continue;
      if (!segment.value().Load(chunk, words, quality)) continue;
      WriterIds& ids = writers[chunk.writer];
      if (records) ReadRecords(words, ids, rows);
      if (chunk.kind == recording::ChunkKind::kDeviceRows) AppendRows(words, ids, rows.device);
      if (chunk.kind == recording::ChunkKind::kCallRows) AppendRows(words, ids, rows.calls);
    }
  }
  rows.dropped = segment.value().info().dropped_detail + segment.value().info().dropped_all;
  rows.damaged += static_cast<int>(quality.items().size());
  return rows;
}

}  // namespace

std::vector<recording::DeviceRow> RecordedRows::Of(recording::DeviceRowType type) const {
  std::vector<recording::DeviceRow> found;
  for (const recording::DeviceRow& row : device) {
    if (row.type == type) found.push_back(row);
  }
  return found;
}

int64_t RecordedRows::CountCalls(const std::string& name) const {
  return std::count_if(calls.begin(), calls.end(),
                       [&](const recording::CallRow& row) { return names[row.name] == name; });
}

std::string RecordedRows::Fact(const std::string& key) const {
  const auto found = facts.find(key);
  return found == facts.end() ? "" : found->second;
}

std::vector<RecordedRows> ReadRows(const std::filesystem::path& run_directory) {
  std::vector<RecordedRows> all;
  for (const recording::RankFolder& folder : recording::RankFoldersIn(run_directory)) {
    for (const auto& path : folder.segments) all.push_back(ReadSegment(path));
  }
  return all;
}

RecordedRows ReadOnlyRows(const std::filesystem::path& run_directory) {
  auto all = ReadRows(run_directory);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? RecordedRows{} : std::move(all[0]);
}

}  // namespace trainprof::testing
