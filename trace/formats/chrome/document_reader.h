// Reads the JSON document of a Chrome trace: an object with "traceEvents", or a bare list of events.
// One pass, in bounded memory beside the tables.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "trace/formats/chrome/chrome_event_parser.h"
#include "trace/formats/chrome/chrome_tables.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/byte_source.h"
#include "trace/formats/io/json_window.h"

namespace trainprof {

class DocumentReader {
 public:
  DocumentReader(const std::string& path, const ImportOptions& options, ByteSource& source);

  Result<Trace> Read();

 private:
  // False: stop; either the end of the data, or an error in failure_.
  bool ReadTopLevel();
  bool ReadMember();
  bool ReadEvents();
  bool ReadEvent();
  bool IsWorthReadingAhead() const;
  bool ReadAhead();
  bool ReadKey(std::string& key);
  bool NoteMember(const std::string& key);
  bool ReadValue(const std::string& key);
  bool SkipHugeValue(const std::string& key);
  bool SkipElement();
  bool Recover(Note note, const char* failed_at);
  void AddRepairs(const json::Repairs& repairs);
  std::string WhyNoEvents(char first) const;

  char Peek();
  bool More();
  bool Stop(Note note, std::string_view what);
  Error Fail(std::string_view message) const;
  bool Tick();
  void ExpectTheRest();
  std::string TooLarge(uint64_t held) const;
  std::string Place(const char* p) const {
    return fmt::format("byte {}, after {} events", window_.OffsetOf(p), progress_.events);
  }
  uint64_t FileBytesRead() const {
    return file_bytes_ahead_ ? *file_bytes_ahead_ : source_.file_bytes_read();
  }
  Result<Trace> Finish();

  const std::string& path_;
  const ImportOptions& options_;
  ByteSource& source_;
  JsonWindow window_;
  TraceBuilder builder_;
  ImportNotes notes_;
  ChromeEventParser parser_;
  ChromeTables tables_;
  ChromeEvent event_;
  ImportProgress progress_;
  std::vector<std::string> member_names_;  // the first kNamesShown, shortened
  std::unordered_set<std::string> known_members_;
  uint64_t no_events_ = 0;  // objects without "ph" and "ts"
  bool found_events_ = false;
  std::string failure_;  // why no trace comes out of it; empty: none so far
  uint64_t max_bytes_ = 0;
  bool expected_ = false;  // ExpectTheRest() has decided
  size_t threads_ = 1;
  uint64_t read_to_ = 0;                      // offset up to which ReadAhead() has read
  std::optional<uint64_t> file_bytes_ahead_;  // of the file, while threads read ahead
  uint64_t ahead_from_ = 0;                   // offset from which on ReadAhead() may try
  uint64_t ahead_pause_ = 1 << 20;            // bytes
  bool after_event_ = false;                  // a comma or the end has to come
  bool recovered_ = false;                    // Recover() was here: any of these may come
};

}  // namespace trainprof
