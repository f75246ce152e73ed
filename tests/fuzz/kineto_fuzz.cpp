// Any bytes as a Chrome trace: must end in an error or a trace, and the trace must survive export
// and import without losing an event, alone and as two ranks of one file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "trace/formats/chrome/split_ranks.h"
#include "trace/formats/exporter.h"
#include "trace/formats/importer.h"

namespace {

// A file in memory, by its /proc path.
class MemoryFile {
 public:
  MemoryFile(const uint8_t* data, size_t size) : fd_(memfd_create("fuzz", 0)) {
    size_t written = 0;
    while (written < size) {
      const ssize_t got = write(fd_, data + written, size - written);
      if (got <= 0) std::abort();
      written += static_cast<size_t>(got);
    }
    path_ = "/proc/self/fd/" + std::to_string(fd_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { close(fd_); }
  const std::string& path() const { return path_; }

 private:
  int fd_;
  std::string path_;
};

size_t Events(const trainprof::Trace& t) {
  return t.ranges.size() + t.api.size() + t.device_ops.size() + t.syncs.size() + t.instants.size() +
         t.counters.size() + t.flows.size() + t.others.size();
}

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "kineto_fuzz: %s\n", what);
  std::abort();
}

void RequireBothRanks(const trainprof::Trace& trace, const std::string& out) {
  using trainprof::Result;
  using trainprof::Trace;
  const auto ranks = [&](const trainprof::VisitRank& visit) {
    const Result<void> first = visit(trace);
    return first.ok() ? visit(trace) : first;
  };
  Require(trainprof::ExportMerged(ranks, out, {.overwrite = true}).ok(), "merging failed");
  Result<Trace> merged = trainprof::ImportTrace(out);
  unlink(out.c_str());
  Require(merged.ok(), "a merged file does not import");
  Require(merged.value().quality.CountOf("unparsable_event") == 0, "a merged event is no JSON");
  const std::vector<Trace> split = trainprof::SplitRanks(std::move(merged).value());
  Require(split.size() == 2, "a rank was lost");
  for (const Trace& rank : split) {
    Require(Events(rank) == Events(trace), "an event of a rank was lost");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile input(data, size);
  const trainprof::Result<trainprof::Trace> trace = trainprof::ImportTrace(input.path());
  if (!trace.ok()) {
    Require(!trace.error().empty(), "an error without a message");
    return 0;
  }
  // In memory where the system has such a folder.
  static const std::string out = std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") +
                                 "/trainprof-fuzz-" + std::to_string(getpid()) + ".json";
  Require(trainprof::ExportTrace(trace.value(), out, {.overwrite = true}).ok(), "export failed");
  trainprof::Result<trainprof::Trace> again = trainprof::ImportTrace(out);
  unlink(out.c_str());
  Require(again.ok(), "an exported trace does not import");
  Require(again.value().quality.CountOf("unparsable_event") == 0, "an exported event is no JSON");
  Require(again.value().quality.CountOf("truncated_input") == 0, "an exported file is cut off");
  Require(Events(again.value()) == Events(trace.value()), "an event was lost on the way");
  RequireBothRanks(trace.value(), out);
  // What hostile input says of its ranks.
  trainprof::SplitRanks(std::move(again).value());
  return 0;
}
