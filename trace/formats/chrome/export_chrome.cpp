// Chrome trace JSON as chrome://tracing, Perfetto, TensorBoard and HTA read it: metadata first,
// times in microseconds with three decimals since baseTimeNanoseconds, integer pids and tids,
// complete events that nest on their track. Every event of the trace is written; reading it back
// gives equal tables.
#include "trace/formats/chrome/chrome_writer.h"
#include "trace/formats/chrome/merge_chrome.h"
#include "trace/formats/exporter.h"
#include "trace/formats/io/file_sink.h"

namespace trainprof::exporters {
namespace {

Result<void> WriteFile(const Trace& trace, const std::string& path, const ExportOptions& options) {
  Result<std::unique_ptr<FileSink>> sink =
      FileSink::Open(path, options.overwrite, FileSink::WrittenBy::kCaller);
  if (!sink.ok()) return Error{sink.error()};
  ChromeWriter(trace, *sink.value()).Write();
  return sink.value()->Commit();
}

constexpr std::string_view kEndings[] = {".json", ".json.gz"};

}  // namespace

extern const Exporter chrome = {
    .slug = "chrome",
    .description =
        "Chrome trace JSON for Perfetto, chrome://tracing, TensorBoard and HTA: .json "
        "or .json.gz",
    .endings = kEndings,
    .write = WriteFile,
    .write_merged = MergeChrome,
};

}  // namespace trainprof::exporters
