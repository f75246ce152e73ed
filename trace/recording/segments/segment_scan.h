// One pass over a segment's records: what must be known before its events can be placed (names,
// clock samples, gaps, the last time seen), and how many events there are.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/base/string_table.h"
#include "trace/recording/segments/read_ahead.h"
#include "trace/recording/segments/record_parser.h"
#include "trace/recording/segments/segment_reader.h"
#include "trace/recording/wire/payload_types.h"

namespace trainprof::recording {

// The strings that one writer has defined so far. Clear() between writers.
class WriterStrings {
 public:
  explicit WriterStrings(StringTable& table) : table_(table) {}

  void Clear();
  // A kString record. Bytes that are not UTF-8 become U+FFFD: true then.
  bool Define(const Record& record);
  // kEmptyString for id 0 and, with *known false, for ids that no surviving record defines.
  StringId Get(uint32_t id, bool* known) const {
    *known = true;
    if (id == 0) return kEmptyString;
    if (id < dense_.size() && dense_[id] != StringId{UINT32_MAX}) return dense_[id];
    return GetSparse(id, known);
  }

 private:
  StringId GetSparse(uint32_t id, bool* known) const;

  // Ids count up from 1, so that a vector serves; damaged ones may be anything.
  static constexpr uint32_t kDenseIds = 1 << 20;
  StringTable& table_;
  std::vector<StringId> dense_;
  std::unordered_map<uint32_t, StringId> sparse_;
};

struct GapMark {
  uint64_t ticks = 0;
  bool begin = false;
  GapReason reason = GapReason::kWindow;
};

struct ScannedDevice {
  DeviceFacts facts{};
  std::string name;
};

// A mapped file with code.
struct ScannedModule {
  ModuleFacts facts{};
  std::string path;
};

struct ScannedStream {
  int64_t priority = 0;
  uint64_t flag = 0;  // CUpti_ActivityStreamFlag; 0: unknown
};

// Stack ids are a writer's own.
using StackKey = std::pair<uint32_t, uint32_t>;  // writer, id
struct ScannedCall {
  StackKey stack;
  StackKey script{};  // of the interpreter; id 0: none
};

struct SegmentScan {
  uint64_t events = 0;                     // pushes, starts, marks; rows
  uint64_t rows = 0;                       // among the events
  uint64_t last_ticks = 0;                 // the latest time stamp of all
  std::map<int64_t, std::string> threads;  // by tid: the last name given, else the thread's own
  std::map<uint32_t, std::string> domains;
  std::map<std::pair<uint32_t, uint32_t>, std::string> categories;  // (domain, category)
  std::vector<GapMark> gaps;                                        // by ticks
  std::vector<ClockSample> clocks;                                  // beside those of the headers

  std::map<std::string, std::string> facts;
  std::map<uint32_t, ScannedDevice> devices;                       // by ordinal
  std::map<uint32_t, uint32_t> device_of_context;                  // ordinal
  std::map<std::pair<uint32_t, uint32_t>, ScannedStream> streams;  // by context, number
  std::vector<ScannedModule> modules;                              // in the order of their records
  std::map<StackKey, std::vector<uint64_t>> stacks;  // return addresses, innermost first
  std::map<StackKey, std::string> scripts;           // a line a frame (FORMAT.md, record 24)
  std::map<uint32_t, ScannedCall> stack_of_call;     // by correlation
  std::vector<std::pair<std::string, ScannedCall>> stack_of_name;  // where ranges are opened
  PayloadTypes payload_types;
};

// `on_payload` as for ReadAhead.
SegmentScan ScanSegment(const SegmentReader& segment, Quality& quality,
                        const OnPayload& on_payload = {});

}  // namespace trainprof::recording
