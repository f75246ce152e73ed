#include "profiler/doctor/gpu_state.h"

#include <cstdlib>
#include <map>
#include <vector>

#include "trace/recording/files/run_directory.h"
#include "trace/recording/segments/record_parser.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/wire/facts.h"

namespace trainprof {
namespace {

using recording::ChunkKind;
using recording::RecordType;
using recording::SegmentReader;

constexpr const char* kLossFacts[] = {fact::kCuptiDropped, fact::kCuptiUntimed};

using Facts = std::map<std::string, std::string>;

// Reads one writer's chunk: its strings and facts. True when there are facts.
bool ReadFacts(const std::vector<uint64_t>& words, std::map<uint32_t, std::string>& strings,
               Facts& facts) {
  bool any = false;
  recording::RecordParser parser(words);
  for (recording::Record record; parser.Next(record);) {
    if (record.type == RecordType::kString) strings[record.id] = recording::StringOf(record);
    if (record.type != RecordType::kFact) continue;
    any = true;
    facts[strings[record.id]] = strings[static_cast<uint32_t>(record.value)];
  }
  return any;
}

// Facts are written by one writer of a process, from its first chunk on: threads' chunks, which may
// be many, are looked at once.
Facts FactsOf(const SegmentReader& segment) {
  Facts facts;
  std::map<uint32_t, bool> writes_facts;
  std::map<uint32_t, std::map<uint32_t, std::string>> strings;
  std::vector<uint64_t> words;
  Quality ignored;
  for (const recording::Chunk& chunk : segment.chunks()) {
    const auto known = writes_facts.find(chunk.writer);
    if (chunk.kind != ChunkKind::kRecords || (known != writes_facts.end() && !known->second))
      continue;
    if (!segment.Load(chunk, words, ignored)) continue;
    const bool any = ReadFacts(words, strings[chunk.writer], facts);
    writes_facts[chunk.writer] = any || known != writes_facts.end();
  }
  return facts;
}

}  // namespace

GpuState ReadGpuState(const std::filesystem::path& run_directory) {
  GpuState state;
  for (const recording::RankFolder& folder : recording::RankFoldersIn(run_directory)) {
    for (const auto& path : folder.segments) {
      Quality ignored;
      const auto segment = SegmentReader::Open(path, ignored);
      if (!segment.ok() || segment.value().sealed()) continue;
      Facts facts = FactsOf(segment.value());
      for (const char* loss : kLossFacts) {
        state.lost += std::strtoull(facts[loss].c_str(), nullptr, 10);
      }
      const std::string& told = facts[fact::kCuptiState];
      const bool trouble =
          !told.empty() && told != fact::kGpuRecording && told.rfind(fact::kGpuOff, 0) != 0;
      if (trouble && state.trouble.empty()) state.trouble = told;
      if (state.memory.empty()) state.memory = facts[fact::kCuptiDeviceMemory];
    }
  }
  return state;
}

}  // namespace trainprof
