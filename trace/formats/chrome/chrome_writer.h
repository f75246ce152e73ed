// Writes a trace's header, metadata and events as Chrome trace JSON; see export_chrome.cpp. Alone
// it is a whole file; for a file of several ranks (merge_chrome.cpp) its parts are taken one by
// one.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trace/formats/chrome/chrome_layout.h"
#include "trace/formats/chrome/json_writer.h"
#include "trace/formats/io/file_sink.h"

namespace trainprof {

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
        rank_(rank),
        layout_(trace, rank),
        is_recording_(layout_.is_recording()) {}

  // The whole file.
  void Write();

  // "key": value lines, each with a comma behind it, down to baseTimeNanoseconds.
  std::string Members();
  // Metadata events, separated by commas.
  std::string Metadata();
  // The processes that Metadata() has named, by their own pid.
  const std::map<int64_t, ProcessNames>& processes() const { return processes_; }
  // All other events, to the sink, `shift_ns` later than in a file of their own; each after a comma
  // but for the first of the file. Returns whether the file still has no event. On all cores, but for a file of
  // several ranks.
  bool WriteEvents(bool is_first, int64_t shift_ns);
  static void WriteDevice(JsonWriter& w, const Device& device, std::string_view name);
  // Every pid that events and metadata have.
  std::vector<int64_t> Pids() const;

 private:
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

  const Trace& trace_;
  FileSink& sink_;
  RankNamespace* const rank_;
  ChromeLayout layout_;
  const bool is_recording_;
  JsonWriter w_;
  std::map<int64_t, ProcessNames> processes_;
};

}  // namespace trainprof
