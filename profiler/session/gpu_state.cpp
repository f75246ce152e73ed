#include "profiler/session/gpu_state.h"

#include <map>
#include <vector>

#include "trace/recording/record_parser.h"
#include "trace/recording/run_directory.h"
#include "trace/recording/segment_reader.h"

namespace trainprof {
namespace {

using recording::ChunkKind;
using recording::RecordType;
using recording::SegmentReader;

constexpr char kStateFact[] = "cupti.state";
constexpr char kOff[] = "off: ";  // as the user asked
constexpr char kRecording[] = "recording";

// Reads one writer's chunk: its strings, and the state when there is one. True when there are
// facts.
bool ReadFacts(const std::vector<uint64_t>& words, std::map<uint32_t, std::string>& strings,
               std::string& state) {
  bool any = false;
  recording::RecordParser parser(words);
  for (recording::Record record; parser.Next(record);) {
    if (record.type == RecordType::kString) strings[record.id] = recording::StringOf(record);
    if (record.type != RecordType::kFact) continue;
    any = true;
    if (strings[record.id] == kStateFact) state = strings[static_cast<uint32_t>(record.value)];
  }
  return any;
}

// Facts are written by one writer of a process, from its first chunk on: threads' chunks, which may
// be many, are looked at once.
std::string StateOf(const SegmentReader& segment) {
  std::string state;
  std::map<uint32_t, bool> writes_facts;
  std::map<uint32_t, std::map<uint32_t, std::string>> strings;
  std::vector<uint64_t> words;
  Quality ignored;
  for (const recording::Chunk& chunk : segment.chunks()) {
    const auto known = writes_facts.find(chunk.writer);
    if (chunk.kind != ChunkKind::kRecords || (known != writes_facts.end() && !known->second))
      continue;
    if (!segment.Load(chunk, words, ignored)) continue;
    const bool facts = ReadFacts(words, strings[chunk.writer], state);
    writes_facts[chunk.writer] = facts || known != writes_facts.end();
  }
  return state;
}

}  // namespace

std::string GpuTrouble(const std::filesystem::path& run_directory) {
  for (const recording::RankFolder& folder : recording::RankFoldersIn(run_directory)) {
    for (const auto& path : folder.segments) {
      Quality ignored;
      const auto segment = SegmentReader::Open(path, ignored);
      if (!segment.ok() || segment.value().sealed()) continue;
      const std::string state = StateOf(segment.value());
      if (!state.empty() && state != kRecording && state.rfind(kOff, 0) != 0) return state;
    }
  }
  return "";
}

}  // namespace trainprof
