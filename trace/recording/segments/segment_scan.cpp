#include "trace/recording/segments/segment_scan.h"

#include <algorithm>

#include "trace/base/utf8.h"
#include "trace/recording/wire/rows.h"

namespace trainprof::recording {
namespace {

class Scanner {
 public:
  Scanner(const SegmentReader& segment, Quality& quality, const OnPayload& on_payload)
      : segment_(segment), quality_(quality), on_payload_(on_payload), strings_(table_) {}

  SegmentScan Run() {
    const SegmentInfo& info = segment_.info();
    scan_.last_ticks = info.opened.ticks;
    if (info.clean_exit) scan_.last_ticks = std::max(scan_.last_ticks, info.closed.ticks);
    std::vector<const Chunk*> records;
    for (const Chunk& chunk : segment_.chunks()) {
      if (chunk.kind == ChunkKind::kRecords) {
        records.push_back(&chunk);
      } else if (chunk.row_bytes != 0) {
        scan_.rows += chunk.payload_bytes / chunk.row_bytes;
      }
    }
    scan_.events = scan_.rows;
    TakeChunks(records);
    std::stable_sort(scan_.gaps.begin(), scan_.gaps.end(),
                     [](const auto& a, const auto& b) { return a.ticks < b.ticks; });
    return std::move(scan_);
  }

 private:
  void TakeChunks(const std::vector<const Chunk*>& chunks) {
    ReadAhead ahead(segment_, chunks, on_payload_);
    uint32_t writer = UINT32_MAX;
    for (const Chunk* chunk : chunks) {
      if (chunk->writer != writer) strings_.Clear();
      writer = writer_ = chunk->writer;
      const LoadedChunk* loaded = ahead.Next(quality_);
      if (loaded == nullptr) continue;
      RecordParser parser(loaded->words);
      for (Record record; parser.Next(record);) Take(record);
    }
  }

  std::string TextOf(uint32_t id) {
    bool known = false;
    return std::string(table_.View(strings_.Get(id, &known)));
  }

  void Take(const Record& record) {
    switch (record.type) {
      case RecordType::kString:
        strings_.Define(record);
        return;
      case RecordType::kThread: {
        bool repaired = false;
        scan_.threads.try_emplace(static_cast<int64_t>(record.extra[0]),
                                  RepairUtf8(ThreadNameOf(record), &repaired));
        break;
      }
      case RecordType::kThreadName:
        scan_.threads[static_cast<int64_t>(record.value)] = TextOf(record.id);
        return;
      case RecordType::kDomain:
        scan_.domains[record.domain] = TextOf(record.id);
        return;
      case RecordType::kCategory:
        scan_.categories[{record.domain, static_cast<uint32_t>(record.value)}] = TextOf(record.id);
        return;
      case RecordType::kGapBegin:
      case RecordType::kGapEnd:
        scan_.gaps.push_back({record.value, record.type == RecordType::kGapBegin,
                              static_cast<GapReason>(record.domain)});
        break;
      case RecordType::kClock:
        scan_.clocks.push_back({record.value, static_cast<int64_t>(record.extra[0]),
                                static_cast<int64_t>(record.extra[1]), record.extra[2]});
        break;
      case RecordType::kPush:
      case RecordType::kStart:
      case RecordType::kMark:
      case RecordType::kRange:
        ++scan_.events;
        break;
      case RecordType::kPop:
      case RecordType::kEnd:
      case RecordType::kThreadTime:
        break;
      case RecordType::kCallStack:
        TakeCallStack(record);
        break;
      default:
        return TakeDeviceFact(record);
    }
    scan_.last_ticks = std::max(scan_.last_ticks, record.value);
  }

  ScannedCall CallOf(uint32_t stack, uint32_t script) {
    ScannedCall call{{writer_, stack}};
    if (script == 0) return call;
    call.script = {writer_, script};
    const auto [it, is_new] = scan_.scripts.try_emplace(call.script);
    if (is_new) it->second = TextOf(script);
    return call;
  }

  // A driver call inside one of the runtime has its correlation: the outer one's stack serves both.
  void TakeCallStack(const Record& record) {
    const auto correlation = static_cast<uint32_t>(record.extra[0]);
    const auto domain = static_cast<CallDomain>(record.extra[0] >> 32);
    const uint64_t script = record.extra.size() > 1 ? record.extra[1] : 0;
    const ScannedCall call = CallOf(record.id, static_cast<uint32_t>(script));
    const auto [it, is_new] = scan_.stack_of_call.try_emplace(correlation, call);
    if (!is_new && domain == CallDomain::kRuntime) it->second = call;
  }

  // Untimed records of what there is: devices, streams, modules, stacks.
  void TakeDeviceFact(const Record& record) {
    const auto low = static_cast<uint32_t>(record.value);
    const auto high = static_cast<uint32_t>(record.value >> 32);
    switch (record.type) {
      case RecordType::kFact:
        scan_.facts[TextOf(record.id)] = TextOf(low);
        return;
      case RecordType::kDevice: {
        const auto facts = FactsOf<DeviceFacts>(record);
        scan_.devices[facts.ordinal] = {facts, TextOf(record.id)};
        return;
      }
      case RecordType::kContext:
        scan_.device_of_context[low] = high;
        if (!record.extra.empty() && record.extra[0] != 0) {
          constexpr uint64_t kNullStream = 3;  // CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL
          const auto null_stream = static_cast<uint32_t>(record.extra[0]);
          scan_.streams.insert_or_assign({low, null_stream}, ScannedStream{0, kNullStream});
        }
        return;
      case RecordType::kStream:
        scan_.streams[{low, high}] = {static_cast<int64_t>(record.extra[0]),
                                      record.extra.size() > 1 ? record.extra[1] : 0};
        return;
      case RecordType::kModule:
        scan_.modules.push_back({FactsOf<ModuleFacts>(record), TextOf(record.id)});
        return;
      case RecordType::kNameStack:
        scan_.stack_of_name.emplace_back(TextOf(record.id), CallOf(low, high));
        return;
      case RecordType::kStack: {
        std::vector<uint64_t>& frames = scan_.stacks[{writer_, record.id}];
        frames.assign(1, record.value);
        frames.insert(frames.end(), record.extra.begin(), record.extra.end());
        return;
      }
      default:
        return TakePayloadType(record);
    }
  }

  void TakePayloadType(const Record& record) {
    const PayloadTypeKey key = KeyOfPayloadType(record.domain, record.value);
    const auto& words = record.extra;
    if (record.type == RecordType::kPayloadSchema) {
      PayloadSchema& schema = scan_.payload_types.schemas[key] = {};
      schema.static_bytes = static_cast<uint32_t>(words[0]);
      schema.packing = static_cast<uint32_t>(words[0] >> 32 & 0xFFFF);
      schema.type = static_cast<uint32_t>(words[0] >> 48);
      for (size_t i = 1; i + 3 <= words.size(); i += 3) {
        schema.fields.push_back(
            {words[i] & ((uint64_t{1} << 48) - 1), static_cast<uint32_t>(words[i] >> 48),
             static_cast<uint32_t>(words[i + 1]), static_cast<uint32_t>(words[i + 1] >> 32),
             TextOf(static_cast<uint32_t>(words[i + 2]))});
      }
    } else if (record.type == RecordType::kPayloadEnum) {
      PayloadEnum& type = scan_.payload_types.enums[key] = {};
      type.value_bytes = static_cast<uint32_t>(words[0]);
      for (size_t i = 1; i + 2 <= words.size(); i += 2) {
        type.entries.push_back(
            {words[i], (words[i + 1] >> 32 & 1) != 0, TextOf(static_cast<uint32_t>(words[i + 1]))});
      }
    }
  }

  const SegmentReader& segment_;
  Quality& quality_;
  const OnPayload& on_payload_;
  StringTable table_;
  WriterStrings strings_;
  uint32_t writer_ = 0;
  SegmentScan scan_;
};

}  // namespace

void WriterStrings::Clear() {
  dense_.clear();
  sparse_.clear();
}

bool WriterStrings::Define(const Record& record) {
  std::string_view text = StringOf(record);
  if ((record.value & kStringTruncated) != 0) {
    // The cut may have split a character: leave its beginning out.
    constexpr size_t kLongest = 3;
    for (size_t back = 1; back <= kLongest && back <= text.size(); ++back) {
      const auto c = static_cast<unsigned char>(text[text.size() - back]);
      if (c < 0xC0) continue;
      if (Utf8Length(text.substr(text.size() - back)) == 0) text.remove_suffix(back);
      break;
    }
  }
  bool repaired = false;
  const StringId id = table_.Intern(RepairUtf8(text, &repaired));
  if (record.id >= kDenseIds) {
    sparse_[record.id] = id;
  } else {
    if (record.id >= dense_.size()) dense_.resize(record.id + 1, StringId{UINT32_MAX});
    dense_[record.id] = id;
  }
  return repaired;
}

StringId WriterStrings::GetSparse(uint32_t id, bool* known) const {
  const auto it = sparse_.find(id);
  if (it != sparse_.end()) return it->second;
  *known = false;
  return kEmptyString;
}

SegmentScan ScanSegment(const SegmentReader& segment, Quality& quality,
                        const OnPayload& on_payload) {
  return Scanner(segment, quality, on_payload).Run();
}

}  // namespace trainprof::recording
