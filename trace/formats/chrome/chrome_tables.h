// Sorts parsed Chrome events into a trace: which table an event belongs to, which process and
// track, what the metadata events and the top-level members say.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/chrome_event.h"
#include "trace/formats/chrome/json_writer.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/formats/chrome/stack_text.h"
#include "trace/formats/importer.h"
#include "trace/formats/notes.h"

namespace trainprof {

// The number that stands for a pid or tid that is a text: the same in every file, negative, far
// from the process ids of any system and from the -1 of kineto, and within 32 bits for Perfetto.
int64_t NumberForText(std::string_view text);

class ChromeTables {
 public:
  ChromeTables(TraceBuilder& builder, ImportNotes& notes, KeptArgs kept = KeptArgs::kAll);

  // Adds one event; `raw` is its JSON text.
  void Add(const ChromeEvent& event, std::string_view raw);
  // A top-level member other than the events, as strict JSON. False: together they are larger than
  // kMaxMemberBytes, this one is dropped.
  static constexpr size_t kMaxMemberBytes = 64 << 20;
  bool AddMember(std::string_view key, std::string raw);
  // About how much memory is held beside the builder's tables.
  size_t size_bytes() const;
  // Closes open events, applies metadata and members. The builder can then be built.
  void Finish();
  // ROCm gives a copy's size with the call that issued it: fills them in once launches are joined.
  void FillCopySizes(Trace& built) const;

 private:
  enum class Class : uint8_t {
    kUnknown,  // not classified yet
    kOther,
    kUserAnnotation,
    kCpuOp,
    kPythonFunction,
    kOverhead,
    kGpuAnnotation,
    kApi,
    kKernel,
    kCopy,
    kMemset,
    kDescribed,  // with the number of a described table (trace.h) added
  };
  // Who reads an argument when a trace is analysed.
  enum class ArgUse : uint8_t {
    kUnknown,
    kNone,
    kAnyRow,
    kRange,  // of the host
    kRowOfUnknownKind,
  };
  struct Metadata {
    StringId what = kEmptyString;  // "thread_name", ...
    int64_t pid = 0;
    int64_t tid = 0;
    StringId text = kEmptyString;
    int64_t number = 0;
  };
  using Place = std::pair<int64_t, int64_t>;  // pid, tid
  // More distinct threads than this is hostile or broken: real traces hold some thousands.
  static constexpr size_t kMaxTracks = 1 << 20;
  // Where points (arrows, instants, counters) stand. Only when all events are in is it known
  // whether that is a thread or a stream; until then their rows carry kPointTrack plus the index of
  // this.
  struct PointTrack {
    Place place;
    bool is_stream = false;  // "stream 7"
  };
  static constexpr uint32_t kPointTrack = 0x80000000;
  struct CachedTrack {
    int64_t pid = 0;
    int64_t tid = 0;
    int64_t kind = 0;  // thread, stream, points
    TrackId track = kNoTrack;
  };

  Class ClassOfWord(std::string_view category) const;
  void AddDescribed(Table which, const ChromeEvent& event, int64_t correlation);
  template <NamedValue Value>
  Value WordOf(const ChromeEvent& event, std::string_view key) const;
  int64_t NumberOf(const ChromeEvent& event, std::string_view key) const;
  Class ClassOf(StringId category);
  static RangeKind RangeKindOf(Class cls, NameFacts facts);

  static bool StandsOnStream(const ChromeEvent& event);
  void AddComplete(const ChromeEvent& event);
  static size_t BytesOf(const ChromeEvent& event);
  void AddDeviceOp(const ChromeEvent& event, Class cls, int64_t correlation);
  void AddBegin(const ChromeEvent& event);
  void AddEnd(const ChromeEvent& event);
  void AddFlow(const ChromeEvent& event);
  bool AddMetadata(const ChromeEvent& event);
  void KeepWithTime(const ChromeEvent& event);
  void KeepVerbatim(const ChromeEvent& event, std::string_view raw);

  int64_t NumberOf(const ChromeId& id);
  TrackId ThreadOf(const ChromeEvent& event);
  TrackId StreamOf(const ChromeEvent& event);
  TrackId TrackOf(const ChromeEvent& event, int64_t number, bool stream);
  Event RowOf(const ChromeEvent& event, TrackId track);
  ArgsId ArgsOf(const ChromeEvent& event);
  bool IsRead(StringId key, Class cls);
  TrackId PointTrackOf(const ChromeEvent& event);
  TrackId Cached(int64_t pid, int64_t tid, bool stream);
  CachedTrack& CacheSlot(int64_t pid, int64_t tid, int64_t kind);
  static bool Holds(const CachedTrack& slot, int64_t pid, int64_t tid, int64_t kind) {
    return slot.track != kNoTrack && slot.pid == pid && slot.tid == tid && slot.kind == kind;
  }

  void CloseOpenEvents();
  void SetOutliersAside();
  template <class T>
  void KeepRow(const T& table, size_t row);
  void ApplyMetadata();
  bool MayAdd(int64_t pid, bool exists);
  void ApplyThreadMetadata(const Metadata& metadata);
  void FindDeviceTracks();
  void SetDevices();
  void PlacePoints();
  TrackId TrackOfPoints(const PointTrack& points);
  void NameAfterTexts();
  void MarkSpanTracks();
  void ApplyMembers();
  void ApplyDevices(const std::string& raw);
  void ApplyDistributed(const std::string& raw);

  TraceBuilder& builder_;
  ImportNotes& notes_;
  KinetoArguments arguments_;
  const KeptArgs kept_;
  std::vector<ArgUse> use_of_key_;  // by StringId of the key
  std::vector<Arg> kept_args_;      // of the event at work
  std::unordered_map<StringId, std::pair<MemoryKind, MemoryKind>> memory_of_copy_;  // by name
  StackTexts stacks_;
  std::vector<Class> class_of_;  // by StringId of the category
  std::array<CachedTrack, 64> cached_tracks_;
  std::unordered_map<StringId, int64_t> number_of_text_;
  std::unordered_map<int64_t, StringId> text_of_number_;
  std::map<Place, std::vector<ChromeEvent>> open_;  // B events
  // (pid, tid) whose events stand on another track of the process: second lanes of a stream, sync
  // rows. The number is that track's.
  std::map<Place, int64_t> lanes_;
  // The least device that an event of the track names; INT64_MAX: none does.
  std::vector<int64_t> device_of_track_;
  std::vector<PointTrack> point_tracks_;
  std::map<Place, uint32_t> point_track_of_;
  std::vector<Metadata> metadata_;
  std::vector<std::pair<std::string, std::string>> members_;
  size_t member_bytes_ = 0;
  size_t open_bytes_ = 0;                                        // of open_
  std::map<std::pair<int64_t, int64_t>, int64_t> api_bytes_of_;  // by pid, correlation (ROCm)
  int64_t last_end_ns_ = INT64_MIN;
  bool is_kineto_ = false;
  JsonWriter writer_;
  ArgKeys keys_{builder_.trace().strings};
};

}  // namespace trainprof
