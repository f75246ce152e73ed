// Writes a trace's header, metadata and events as Chrome trace JSON; see export_chrome.cpp. Alone
// it is a whole file; for a file of several ranks (merge_chrome.cpp) its parts are taken one by
// one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trace/formats/chrome/chrome_lanes.h"
#include "trace/formats/chrome/json_writer.h"
#include "trace/formats/chrome/rank_namespace.h"
#include "trace/formats/chrome/stack_text.h"
#include "trace/formats/io/file_sink.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Times count from a whole microsecond, so that they have the same digits below it as in the
// source's own clock: readers that round to microseconds (HTA) then round as they would there.
constexpr int64_t WholeMicroseconds(int64_t base_ns) { return base_ns / 1000 * 1000; }

class ChromeWriter {
 public:
  // What a process was called before the ranks were told apart, as a file of this rank alone has
  // it.
  struct ProcessNames {
    std::string name;
    std::string labels;
    int64_t sort_index = 0;
  };

  // `rank` may be null: the file is this trace's alone. Pids of the trace must be known to it
  // before metadata or events are written. All three outlive the writer.
  ChromeWriter(const Trace& trace, FileSink& sink, RankNamespace* rank = nullptr)
      : trace_(trace),
        sink_(sink),
        lanes_(trace),
        rank_(rank),
        is_recording_(!HasChromeWords(trace)),
        shift_ns_(trace.base_ns - WholeMicroseconds(trace.base_ns)) {}

  // The whole file.
  void Write();

  // "key": value lines, each with a comma behind it, down to baseTimeNanoseconds.
  std::string Members();
  // Metadata events, separated by commas.
  std::string Metadata();
  // The processes that Metadata() has named, by their own pid.
  const std::map<int64_t, ProcessNames>& processes() const { return processes_; }
  // All other events, to the sink, `shift_ns` later than in a file of their own; each after a comma
  // but for the first of the file. Returns whether the file still has no event.
  bool WriteEvents(bool is_first, int64_t shift_ns);
  static void WriteDevice(JsonWriter& w, const Device& device, std::string_view name);
  // Every pid that events and metadata have.
  std::vector<int64_t> Pids() const;

 private:
  // Fields that a recording has in columns only, and Kineto's readers want among the arguments.
  struct Extra {
    std::string_view key;
    int64_t value;
  };

  void WriteMembers();
  void WriteMember(std::string_view key, std::string_view raw);
  void WriteDevices();
  void WriteMetadata();
  void WriteProcess(int64_t pid, ProcessNames names);
  void WriteThread(ChromeLanes::Place place, std::string_view name, int64_t sort_index);
  void WriteStream(ChromeLanes::Place place, const Track& track);
  // A metadata event: write_value() writes the value of its one argument.
  template <class WriteValue>
  void WriteMetadataEvent(ChromeLanes::Place place, std::string_view what, std::string_view key,
                          WriteValue write_value);
  void AddStack(StackId stack, std::string_view key = kCallStackKey);
  void AddOpenings(uint32_t range);
  void AddWord(std::string_view key, NamedValue auto value);
  void WriteRanges();
  void WriteApi();
  void WriteDeviceOps();
  template <class T>
  void WriteDescribed(Table which, const T& table);
  void WritePoints();
  void WriteFlows();
  void WriteLaunchArrows();
  void WriteOthers();

  void WriteTables();
  void BeginEvent();
  void EndEvent();
  void Common(std::string_view category, std::string_view name, int64_t pid, int64_t tid,
              TraceTime time);
  void Complete(Table table, const EventColumns& columns, uint32_t row, std::string_view category,
                std::string_view name, std::span<const Extra> extras);
  void TakeArgs(Table table, uint32_t row);
  void Args(Table table, uint32_t row);
  ChromeLanes::Place PlaceOf(TrackId track) const;
  // In unsigned numbers: times of hostile files are near the end of the range.
  int64_t Shifted(int64_t ns) const {
    return static_cast<int64_t>(static_cast<uint64_t>(ns) + static_cast<uint64_t>(shift_ns_));
  }
  void RenameIds();
  int64_t RenameFlow(int64_t id);
  bool HasArg(std::string_view key) const;
  bool SaysStream(int64_t stream) const;
  std::string_view RangeCategory(uint32_t row) const;
  std::string StepName(uint32_t row);

  const Trace& trace_;
  FileSink& sink_;
  ChromeLanes lanes_;
  RankNamespace* const rank_;
  const bool is_recording_;  // or of another importer: words and arguments are made here
  int64_t shift_ns_;
  JsonWriter w_;
  std::vector<Arg> args_;  // of the event at work
  StringTable spelled_;    // of arguments that are spelled from columns
  ArgKeys keys_{trace_.strings};
  ArgKeys spelled_keys_{spelled_};
  ArgKeys* arg_keys_ = nullptr;  // of args_, one of both
  std::vector<Extra> extras_;    // of a described row
  std::vector<AddedArg> added_;
  std::unordered_map<StackId, std::string> stack_texts_;  // as spelled
  std::vector<int64_t> steps_of_track_;
  std::map<std::pair<ProcessId, StringId>, std::vector<StackId>> openings_;  // not written yet
  std::vector<bool> is_opened_;                                              // by StringId
  std::map<int64_t, ProcessNames> processes_;
  bool first_event_ = true;
  bool keep_buffer_ = false;  // nothing goes to the sink yet
};

}  // namespace trainprof
