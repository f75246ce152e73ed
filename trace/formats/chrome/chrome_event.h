// One event of a Chrome trace as parsed: fields as the file has them, texts interned, times in
// nanoseconds. ChromeEventParser makes it, ChromeTables sorts it into the trace.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/base/ids.h"
#include "trace/tables/args.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Metadata events of ours, of a stream's track: {"order": "non-blocking"}, {"priority": -5}.
inline constexpr std::string_view kStreamOrderEvent = "stream_order";
inline constexpr std::string_view kStreamPriorityEvent = "stream_priority";

// A pid or tid: a number (also as text, "25738"; "stream 7" is 7), or a text.
struct ChromeId {
  enum class Kind : uint8_t { kAbsent, kNumber, kStream, kText };
  Kind kind = Kind::kAbsent;
  int64_t number = 0;
  StringId text = kEmptyString;  // kText

  bool operator==(const ChromeId&) const = default;
};

// All of an event but its arguments.
struct ChromeFields {
  char phase = 0;
  char scope = 0;  // 's' of instants
  char bind = 0;   // 'bp'
  bool has_time = false;
  bool has_duration = false;
  bool has_id = false;
  bool repaired = false;  // its raw text is not strict JSON
  int64_t time_ns = 0;
  int64_t duration_ns = 0;
  int64_t id = 0;
  StringId name = kEmptyString;
  StringId category = kEmptyString;
  ChromeId pid;
  ChromeId tid;

  // Also found among the args; kNoValue when absent or no integer.
  static constexpr int64_t kNoValue = INT64_MIN;
  int64_t device = kNoValue;
  int64_t stream = kNoValue;
  int64_t correlation = kNoValue;
  int64_t bytes = kNoValue;
  StringId copy_kind = kEmptyString;  // ROCm's "kind": "HtoD"
  StringId stack = kEmptyString;      // "Call stack"
  StringId opened_at = kEmptyString;  // "Opened at"
  int64_t api_bytes = kNoValue;       // ROCm's "size": "2560" of a call
  int64_t true_tid = kNoValue;        // kTrueTidKey, which is not kept among the args
  bool on_stream = false;             // true_tid is kTrueStreamKey's

  bool operator==(const ChromeFields&) const = default;

  template <class Use>
  void EachText(Use use) {
    for (StringId* id : {&name, &category, &pid.text, &tid.text, &copy_kind, &stack, &opened_at}) {
      use(*id);
    }
  }
};

struct ChromeEvent : ChromeFields {
  std::vector<Arg> args;  // in the file's order; fields outside "args" carry kFieldPrefix

  void Clear() {
    static const ChromeFields kNone;  // a temporary is written member by member and stalls the copy
    static_cast<ChromeFields&>(*this) = kNone;
    args.clear();
  }
};

// The category of a described table's rows (trace.h): Kineto's word, else the table's own title.
template <DescribedTable T>
constexpr std::string_view ChromeWord() {
  return std::is_same_v<T, SyncTable> ? std::string_view("cuda_sync") : T::kTitle;
}
// Whether a file's category is that of the table's rows.
template <DescribedTable T>
constexpr bool IsChromeWord(std::string_view category) {
  return category == ChromeWord<T>() ||
         (std::is_same_v<T, SyncTable> && category == std::string_view("cuda_event"));
}

// A field of an event that has no column ("tts", "cname", "id" of an X, ...) is kept as an argument
// under its name with this prefix; an argument whose own name starts with it gets one more. Export
// undoes both.
inline constexpr char kFieldPrefix = '^';
constexpr bool IsChromeField(std::string_view key) {
  return key.size() > 1 && key[0] == kFieldPrefix && key[1] != kFieldPrefix;
}
// The order in which export writes them.
inline void PutFieldsFirst(std::vector<Arg>& args, const StringTable& strings) {
  std::stable_partition(args.begin(), args.end(),
                        [&](const Arg& arg) { return IsChromeField(strings.View(arg.key)); });
}

// Export puts events that overlap without nesting on further lanes, tracks of their own; this
// argument then says the tid that they belong to.
inline constexpr std::string_view kTrueTidKey = "trainprof tid";
// The same of a row that stands on a device's stream although nothing else in the file may say so:
// a row of an unknown category.
inline constexpr std::string_view kTrueStreamKey = "trainprof stream";

}  // namespace trainprof
