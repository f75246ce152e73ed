// Collapsed stacks, as flame graph tools read them: a line for each distinct stack of a thread, its
// frames outermost first with ';' between them, then the microseconds that were spent there.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "trace/formats/exporter.h"
#include "trace/formats/io/file_sink.h"
#include "trace/formats/io/sampled_stacks.h"

namespace trainprof::exporters {
namespace {

// What parts frames and lines cannot stand within one.
std::string Plain(std::string text) {
  std::replace(text.begin(), text.end(), ';', ',');
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return text;
}

std::string FrameText(const Trace& trace, const CallFrame& frame) {
  std::string text(trace.Text(frame.function));
  if (frame.HasLine()) {
    const std::string line = frame.line > 0 ? fmt::format(":{}", frame.line) : "";
    text += fmt::format(" ({}{})", trace.Text(frame.file), line);
  }
  return Plain(std::move(text));
}

Result<void> Write(const Trace& trace, const std::string& path, const ExportOptions& options) {
  if (Result<void> any = CheckHasSamples(trace); !any.ok()) return any;
  std::map<std::pair<TrackId, StackId>, int64_t> spent_ns;
  ForEachSampledThread(trace, [&](TrackId track, const std::vector<StackSample>& samples) {
    for (const StackSample& sample : samples) spent_ns[{track, sample.stack}] += sample.weight_ns;
  });
  Result<std::unique_ptr<FileSink>> sink = FileSink::Open(path, options.overwrite);
  if (!sink.ok()) return Error{sink.error()};
  for (const auto& [key, ns] : spent_ns) {
    const auto& [track, stack] = key;
    std::string line = Plain(ThreadText(trace, track));
    for (const FrameId frame : OutermostFirst(trace.stacks, stack)) {
      line += ";" + FrameText(trace, trace.stacks.frame(frame));
    }
    constexpr int64_t kNsAMicrosecond = 1000;
    sink.value()->Write(fmt::format("{} {}\n", line, ns / kNsAMicrosecond));
  }
  return sink.value()->Commit();
}

constexpr std::string_view kEndings[] = {".collapsed", ".folded", ".collapsed.gz", ".folded.gz"};

}  // namespace

extern const Exporter collapsed = {
    .slug = "collapsed",
    .description = "*.collapsed, *.folded: sampled stacks, for flame graph tools",
    .endings = kEndings,
    .write = Write,
    .write_merged = nullptr,
};

}  // namespace trainprof::exporters
