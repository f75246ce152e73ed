// An example: an importer. A step log has a line an event, times in microseconds:
//
//   steplog 1
//   range 100 step 0 900                       thread, name, begin, length
//   call 100 cudaLaunchKernel 10 5 42          the same, and the id of what it launched
//   kernel 7 matmul 30 400 42                  stream, name, begin, length, id
#include <fmt/format.h>

#include <array>
#include <sstream>
#include <string>

#include "trace/base/cancel.h"
#include "trace/build/trace_builder.h"
#include "trace/formats/importer.h"
#include "trace/formats/io/byte_source.h"

namespace trainprof::importers {
namespace {

constexpr std::string_view kFirstLine = "steplog 1";

int Sniff(std::string_view first_bytes, std::string_view) {
  return first_bytes.starts_with(kFirstLine) ? 100 : 0;
}

// Whether the line is an event.
bool AddLine(const std::string& line, ProcessId process, TraceBuilder& builder) {
  std::istringstream words(line);
  std::string kind;
  std::string name;
  int64_t place = 0;
  double begin_us = 0;
  double length_us = 0;
  int64_t id = kNoCorrelation;
  if (!(words >> kind >> place >> name >> begin_us >> length_us)) return false;
  if (kind != "range" && !(words >> id)) return false;
  const auto time = [](double us) { return TraceTime{static_cast<int64_t>(us * 1000)}; };
  const bool on_stream = kind == "kernel";
  const Event event{.begin = time(begin_us),
                    .end = time(begin_us + length_us),
                    .name = builder.Intern(name),
                    .track = on_stream ? builder.FindOrAddStream(process, 0, place)
                                       : builder.FindOrAddThread(process, place)};
  if (kind == "range") {
    builder.AddRange(event, RangeKind::kUserAnnotation);
  } else if (kind == "call") {
    builder.AddApi(event, ApiKindOf(name), id);
  } else if (kind == "kernel") {
    builder.AddDeviceOp(event, DeviceOpKind::kKernel, CopyDirection::kUnknown, 0, id);
  } else {
    return false;
  }
  return true;
}

Result<Trace> Read(ByteSource& source, const std::string& path, const ImportOptions&) {
  TraceBuilder builder;
  const ProcessId process = builder.FindOrAddProcess(1);
  std::string text;
  std::array<char, 1 << 16> part;
  while (const size_t size = source.Read(part.data(), part.size())) text.append(part.data(), size);
  std::istringstream lines(text);
  std::string line;
  std::getline(lines, line);  // the first one
  for (size_t number = 2; std::getline(lines, line); ++number) {
    CancelPoint(number);
    if (line.empty() || AddLine(line, process, builder)) continue;
    builder.quality().Count("unparsable_event", QualitySeverity::kDataLoss, 1,
                            fmt::format("line {} is no event", number));
  }
  builder.trace().path = path;
  return std::move(builder).Build(true);
}

constexpr std::string_view kEndings[] = {".steplog"};

}  // namespace

extern const Importer steplog = {
    .slug = "steplog",
    .description = "step logs, an example",
    .endings = kEndings,
    .sniff = Sniff,
    .read = Read,
};

}  // namespace trainprof::importers
