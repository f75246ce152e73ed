// A trace as text: for goldens, and to compare two traces whose ids differ (process, track and
// string numbers depend on the order in which a file mentions them).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "trace/base/result.h"
#include "trace/tables/trace.h"

namespace trainprof {

// Every row of every table with all its columns, names in place of ids, tracks in the order of
// (pid, tid, kind). Two traces with equal text are equal.
std::string TraceText(const Trace& trace);

// Where two texts first differ, with both lines.
std::string FirstDifference(const std::string& a, const std::string& b);

// The traces of the corpus, sorted; empty where there is none.
std::vector<std::string> CorpusFiles();

// One line a quality item: "bad_escape 1 (warning)".
std::string QualityText(const Trace& trace);

// A file in a temporary folder that is removed with it.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view name, std::string_view content = {});
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  const std::string& path() const { return path_; }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  std::string path_;
};

std::string Gzip(std::string_view text);
std::string ReadWhole(const std::string& path);
std::string Decompressed(const std::string& path);  // the text of a .gz, or of any other file

// Writes `json` to a file and imports it.
Result<Trace> ImportText(std::string_view json);
Trace Imported(std::string_view json);  // the test fails where it cannot be imported

}  // namespace trainprof
