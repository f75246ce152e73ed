// Writes a trace's header, metadata and events as Chrome trace JSON; see export_chrome.cpp.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/formats/chrome_lanes.h"
#include "trace/formats/file_sink.h"
#include "trace/formats/json_writer.h"
#include "trace/trace.h"

namespace trainprof {

class ChromeWriter {
 public:
  ChromeWriter(const Trace& trace, FileSink& sink)
      : trace_(trace),
        sink_(sink),
        lanes_(trace),
        is_recording_(trace.source == SourceKind::kRecording),
        key_stream_(trace.strings.Find("stream")) {}

  void Write();

 private:
  using Table = ChromeLanes::Table;
  // Fields that a recording has in columns only, and Kineto's readers want among the arguments.
  struct Extra {
    std::string_view key;
    int64_t value;
  };

  void WriteHeader();
  void WriteMember(std::string_view key, std::string_view raw);
  void WriteDevices();
  void WriteMetadata();
  void WriteProcess(int64_t pid, std::string_view name, const Process& process);
  void WriteThread(int64_t pid, int64_t tid, std::string_view name, int64_t sort_index);
  void WriteRanges();
  void WriteApi();
  void WriteDeviceOps();
  void WriteSyncs();
  void WritePoints();
  void WriteFlows();
  void WriteLaunchArrows();
  void WriteOthers();

  void BeginEvent();
  void EndEvent();
  void Common(std::string_view category, std::string_view name, int64_t pid, int64_t tid,
              TraceTime time);
  void Complete(Table table, const EventColumns& columns, uint32_t row, std::string_view category,
                std::string_view name, std::initializer_list<Extra> extras);
  void Args(ArgsId id, const int64_t* event_id = nullptr);
  bool HasArg(std::string_view key) const;
  bool SaysStream(int64_t stream) const;
  std::string_view RangeCategory(uint32_t row) const;
  std::string StepName(uint32_t row);

  const Trace& trace_;
  FileSink& sink_;
  ChromeLanes lanes_;
  const bool is_recording_;
  const StringId key_stream_;
  JsonWriter w_;
  std::vector<Arg> args_;
  std::vector<std::pair<std::string_view, ArgValue>> added_;
  std::vector<int64_t> steps_of_track_;
  bool first_event_ = true;
};

}  // namespace trainprof
