// Speedscope's JSON: sampled stacks, a profile for each thread, in nanoseconds.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "trace/formats/exporter.h"
#include "trace/formats/io/file_sink.h"
#include "trace/formats/io/sampled_stacks.h"

namespace trainprof::exporters {
namespace {

constexpr char kSchema[] = "https://www.speedscope.app/file-format-schema.json";

std::string Quoted(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class Writer {
 public:
  Writer(const Trace& trace, FileSink& sink) : trace_(trace), sink_(sink) {}

  void Write() {
    sink_.Write(fmt::format("{{\"$schema\":\"{}\",\"exporter\":\"trainprof\",\"name\":{},\n",
                            kSchema, Quoted(trace_.path)));
    WriteFrames();
    sink_.Write("\"profiles\":[");
    bool first = true;
    ForEachSampledThread(trace_, [&](TrackId track, const std::vector<StackSample>& samples) {
      sink_.Write(first ? "\n" : ",\n");
      WriteProfile(track, samples);
      first = false;
    });
    sink_.Write("]}\n");
  }

 private:
  void WriteFrames() {
    sink_.Write("\"shared\":{\"frames\":[");
    ForEachSampledThread(trace_, [&](TrackId, const std::vector<StackSample>& samples) {
      for (const StackSample& sample : samples) Learn(sample.stack);
    });
    sink_.Write("]},\n");
  }

  // Numbers the stack's frames, and writes those that are new.
  void Learn(StackId stack) {
    for (; stack != kNoStack && !known_.contains(stack); stack = trace_.stacks.caller(stack)) {
      known_.insert(stack);
      const FrameId id = trace_.stacks.innermost(stack);
      const auto [it, is_new] = number_of_.try_emplace(id, number_of_.size());
      if (!is_new) continue;
      const CallFrame& frame = trace_.stacks.frame(id);
      std::string text = fmt::format("{}\n{{\"name\":{}", it->second == 0 ? "" : ",",
                                     Quoted(trace_.Text(frame.function)));
      if (frame.HasLine()) text += fmt::format(",\"file\":{}", Quoted(trace_.Text(frame.file)));
      if (frame.HasLine() && frame.line > 0) text += fmt::format(",\"line\":{}", frame.line);
      sink_.Write(text + "}");
    }
  }

  // A sample's time is that before it.
  void WriteProfile(TrackId track, const std::vector<StackSample>& samples) {
    int64_t whole_ns = 0;
    for (const StackSample& sample : samples) whole_ns += sample.weight_ns;
    const int64_t start_ns = samples.front().at.ns - samples.front().weight_ns;
    sink_.Write(
        fmt::format("{{\"type\":\"sampled\",\"name\":{},\"unit\":\"nanoseconds\","
                    "\"startValue\":{},\"endValue\":{},\n\"samples\":[",
                    Quoted(ThreadText(trace_, track)), start_ns, start_ns + whole_ns));
    std::string part;
    for (const StackSample& sample : samples) {
      std::string text = part + "[";
      for (const FrameId frame : OutermostFirst(trace_.stacks, sample.stack)) {
        text += (text.back() == '[' ? "" : ",") + std::to_string(number_of_.at(frame));
      }
      sink_.Write(text + "]");
      part = ",";
    }
    sink_.Write("],\n\"weights\":[");
    part.clear();
    for (const StackSample& sample : samples) {
      sink_.Write(part + std::to_string(sample.weight_ns));
      part = ",";
    }
    sink_.Write("]}");
  }

  const Trace& trace_;
  FileSink& sink_;
  std::unordered_map<FrameId, size_t> number_of_;
  std::unordered_set<StackId> known_;
};

Result<void> Write(const Trace& trace, const std::string& path, const ExportOptions& options) {
  if (Result<void> any = CheckHasSamples(trace); !any.ok()) return any;
  Result<std::unique_ptr<FileSink>> sink = FileSink::Open(path, options.overwrite);
  if (!sink.ok()) return Error{sink.error()};
  Writer(trace, *sink.value()).Write();
  return sink.value()->Commit();
}

constexpr std::string_view kEndings[] = {".speedscope.json", ".speedscope.json.gz"};

}  // namespace

extern const Exporter speedscope = {
    .slug = "speedscope",
    .description = "*.speedscope.json, *.speedscope.json.gz: sampled stacks, for speedscope",
    .endings = kEndings,
    .write = Write,
    .write_merged = nullptr,
};

}  // namespace trainprof::exporters
