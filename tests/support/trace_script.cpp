#include "tests/support/trace_script.h"

#include <fmt/format.h>

#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "trace/build/trace_builder.h"
#include "trace/formats/chrome/kineto_words.h"
#include "trace/formats/chrome/stack_text.h"

namespace trainprof {
namespace {

SyncKind SyncKindNamed(std::string_view name, const std::string& line) {
  for (size_t i = 0; i < std::size(kSyncKindNames); ++i) {
    if (kSyncKindNames[i] == name) return SyncKind{static_cast<uint8_t>(i)};
  }
  throw std::invalid_argument(line);
}

StreamOrder StreamOrderNamed(std::string_view name, const std::string& line) {
  for (size_t i = 0; i < std::size(kStreamOrderNames); ++i) {
    if (kStreamOrderNames[i] == name) return StreamOrder{static_cast<uint8_t>(i)};
  }
  throw std::invalid_argument(line);
}

class Script {
 public:
  Trace Run(std::string_view text) {
    std::istringstream in{std::string(text)};
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    for (size_t i = 0; i < lines.size(); ++i) {
      std::istringstream words(lines[i]);
      std::string kind;
      if (!(words >> kind) || kind[0] == '#') continue;
      if (kind != "repeat") {
        Line(kind, words, lines[i], 0, 0);
        continue;
      }
      int times = 0;
      std::string every;
      int64_t period = 0;
      if (!(words >> times >> every >> period)) throw std::invalid_argument(lines[i]);
      const size_t first = i + 1;
      while (++i < lines.size() && !IsEnd(lines[i])) {
      }
      for (int n = 0; n < times; ++n) {
        for (size_t j = first; j < i; ++j) {
          std::istringstream inner(lines[j]);
          if (inner >> kind) Line(kind, inner, lines[j], n * period, n * kCorrelationShift);
        }
      }
    }
    return std::move(builder_).Build();
  }

 private:
  static constexpr int64_t kCorrelationShift = 1000;

  static bool IsEnd(const std::string& line) {
    const size_t at = line.find_first_not_of(' ');
    return at != std::string::npos && line.compare(at, 3, "end") == 0;
  }

  void Line(const std::string& kind, std::istringstream& words, const std::string& line,
            int64_t shift_us, int64_t correlation_shift) {
    if (kind == "recording") {
      builder_.trace().source = SourceKind::kRecording;
      return;
    }
    if (kind == "thread" || kind == "stream") {
      int64_t first = 0;
      int64_t second = 0;
      words >> first >> second;
      // In recordings a stream belongs to the process that drives it, in imports to its device.
      const bool recorded = builder_.trace().source == SourceKind::kRecording;
      track_ = kind == "thread" ? builder_.FindOrAddThread(builder_.FindOrAddProcess(1), first)
                                : builder_.FindOrAddStream(
                                      builder_.FindOrAddProcess(recorded ? 1 : 1'000'000 + first),
                                      first, second);
      if (std::string order; kind == "stream" && words >> order) {
        builder_.trace().tracks[Index(track_)].order = StreamOrderNamed(order, line);
      }
      return;
    }
    if (kind == "device") {
      int64_t number = 0;
      int32_t multiprocessors = 0;
      int32_t compute_major = 0;
      words >> number >> multiprocessors >> compute_major;
      Device& device = builder_.device(builder_.FindOrAddDevice(number));
      device.num_sms = multiprocessors;
      device.compute_major = compute_major;
      return;
    }
    int64_t begin = 0;
    int64_t end = 0;
    if (!(words >> begin >> end)) throw std::invalid_argument(line);
    std::string rest;
    std::getline(words, rest);
    const size_t bar = rest.find(" | ");
    std::string name = rest.substr(0, bar);
    name.erase(0, name.find_first_not_of(' '));
    const auto attributes =
        Attributes(bar == std::string::npos ? std::string() : rest.substr(bar + 3));
    Add(kind, line, name, attributes,
        {TraceTime{1000 * (begin + shift_us)}, TraceTime{1000 * (end + shift_us)}},
        correlation_shift);
  }

  // "corr=5 bytes=8", or "stack=..." or "opened-at=..." up to the end of the line.
  static std::map<std::string, std::string> Attributes(std::string text) {
    std::map<std::string, std::string> attributes;
    for (const std::string key : {"stack", "opened-at"}) {
      const size_t at = text.find(key + "=");
      if (at == std::string::npos) continue;
      attributes[key] = text.substr(at + key.size() + 1);
      text.resize(at);
    }
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      const size_t equals = word.find('=');
      attributes[word.substr(0, equals)] = word.substr(equals + 1);
    }
    return attributes;
  }

  void Add(const std::string& kind, const std::string& line, const std::string& name,
           const std::map<std::string, std::string>& attributes, const Interval& interval,
           int64_t correlation_shift) {
    const auto number = [&](const char* key, int64_t otherwise) {
      const auto it = attributes.find(key);
      return it == attributes.end() ? otherwise : std::stoll(it->second);
    };
    int64_t correlation = number("corr", kNoCorrelation);
    if (correlation != kNoCorrelation) correlation += correlation_shift;
    Event event{interval.begin, interval.end, builder_.Intern(name), track_};
    if (const auto stack = attributes.find("stack"); stack != attributes.end()) {
      event.stack = stacks_.Of(builder_.Intern(stack->second));
    }
    if (const auto place = attributes.find("opened-at"); place != attributes.end()) {
      const ProcessId process = builder_.trace().tracks[Index(track_)].process;
      builder_.AddOpening({event.name, process, stacks_.Of(builder_.Intern(place->second))});
    }
    if (kind == "step" || kind == "annotation") {
      const bool on_stream = builder_.trace().tracks[Index(track_)].kind == TrackKind::kStream;
      builder_.AddRange(event, on_stream ? RangeKind::kGpuAnnotation : RangeKind::kUserAnnotation);
    } else if (kind == "overhead") {
      builder_.AddRange(event, RangeKind::kOverhead);
    } else if (kind == "op") {
      builder_.AddRange(event, RangeKind::kCpuOp);
    } else if (kind == "python") {
      event.stack = stacks_.OfFrame(event.name);
      builder_.AddRange(event, RangeKind::kPythonFunction);
    } else if (kind == "call") {
      builder_.AddApi(event, ApiKindOf(name), correlation);
    } else if (kind == "kernel") {
      DeviceOpDetails details;
      if (const int64_t blocks = number("grid", 0); blocks > 0) {
        LaunchConfig config;
        config.grid = {static_cast<uint32_t>(blocks), 1, 1};
        config.block = {128, 1, 1};
        if (const int64_t percent = number("occupancy", 0); percent > 0) {
          config.theoretical_occupancy_percent = static_cast<double>(percent);
        }
        details.launch_config = builder_.FindOrAddLaunchConfig(config);
      }
      builder_.AddDeviceOp(event, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, correlation,
                           details);
    } else if (kind == "copy") {
      const auto [source, target] = MemoryKindsOf(name);
      builder_.AddDeviceOp(event, DeviceOpKind::kCopy, CopyDirectionOf(name), number("bytes", 0),
                           correlation, {source, target});
    } else if (kind == "memset") {
      builder_.AddDeviceOp(event, DeviceOpKind::kMemset, CopyDirection::kUnknown,
                           number("bytes", 0), correlation);
    } else if (kind == "stream-wait") {
      builder_.AddRow(builder_.trace().syncs, event, kEmptyString, correlation,
                      SyncKind::kStreamWaits, kNoCorrelation, kNoCorrelation,
                      number("stream", kNoCorrelation), number("device", 0),
                      number("record", kNoCorrelation) + correlation_shift, kNoCorrelation);
    } else if (kind == "host-function") {
      builder_.AddRow(builder_.trace().syncs, event, kEmptyString, correlation,
                      SyncKind::kHostFunction, kNoCorrelation, kNoCorrelation, kNoCorrelation,
                      kNoCorrelation, kNoCorrelation, int64_t{2});
    } else if (kind == "sync") {
      int64_t record = number("record", kNoCorrelation);
      if (record != kNoCorrelation) record += correlation_shift;
      builder_.AddRow(builder_.trace().syncs, event, kEmptyString, correlation,
                      SyncKindNamed(name, line), kNoCorrelation, kNoCorrelation,
                      number("on-stream", kNoCorrelation), number("on-device", kNoCorrelation),
                      record, kNoCorrelation);
    } else if (kind == "cpu") {
      event.begin = event.end;
      builder_.AddRow(builder_.trace().cpu_times, event, kEmptyString, interval.Length().ns,
                      1000 * number("used", 0), number("waits", 0), number("interruptions", 0));
    } else if (kind == "gap") {
      builder_.AddGap({interval, builder_.FindOrAddProcess(1), builder_.Intern("window")});
    } else if (kind == "device-gap") {
      builder_.AddGap({interval, builder_.FindOrAddProcess(1), builder_.Intern("GPU detail off"),
                       GapKind::kDevice});
    } else {
      throw std::invalid_argument(line);
    }
  }

  TraceBuilder builder_;
  StackTexts stacks_{builder_};
  TrackId track_{};
};

}  // namespace

Trace TraceFromScript(std::string_view script) { return Script().Run(script); }

}  // namespace trainprof
