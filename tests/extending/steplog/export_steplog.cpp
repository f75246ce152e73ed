// An example: an exporter. import_steplog.cpp says what the lines are.
#include <fmt/format.h>

#include "trace/formats/exporter.h"
#include "trace/formats/io/file_sink.h"

namespace trainprof::exporters {
namespace {

// "kernel 7 matmul 30 400"
std::string Line(const Trace& trace, std::string_view kind, const EventColumns& rows, size_t row) {
  const double us_per_ns = 1e-3;
  return fmt::format("{} {} {} {} {}", kind, trace.tracks[Index(rows.track[row])].tid,
                     trace.Text(rows.name[row]),
                     static_cast<double>(rows.begin[row].ns) * us_per_ns,
                     static_cast<double>((rows.end(row) - rows.begin[row]).ns) * us_per_ns);
}

Result<void> Write(const Trace& trace, const std::string& path, const ExportOptions& options) {
  Result<std::unique_ptr<FileSink>> sink = FileSink::Open(path, options.overwrite);
  if (!sink.ok()) return Error{sink.error()};
  sink.value()->Write("steplog 1\n");
  for (size_t row = 0; row < trace.ranges.size(); ++row) {
    sink.value()->Write(Line(trace, "range", trace.ranges, row) + "\n");
  }
  for (size_t row = 0; row < trace.api.size(); ++row) {
    sink.value()->Write(
        fmt::format("{} {}\n", Line(trace, "call", trace.api, row), trace.api.correlation[row]));
  }
  for (size_t row = 0; row < trace.device_ops.size(); ++row) {
    sink.value()->Write(fmt::format("{} {}\n", Line(trace, "kernel", trace.device_ops, row),
                                    trace.device_ops.correlation[row]));
  }
  return sink.value()->Commit();
}

constexpr std::string_view kEndings[] = {".steplog"};

}  // namespace

extern const Exporter steplog = {
    .slug = "steplog",
    .description = "step logs, an example",
    .endings = kEndings,
    .write = Write,
    .write_merged = nullptr,
};

}  // namespace trainprof::exporters
