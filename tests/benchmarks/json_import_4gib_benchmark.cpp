// An input over 4 GiB, plain and gzip (whose size field has 32 bits): every event arrives, and
// memory stays within 150 bytes an event. Takes minutes, 5 GB of disk and some 3 GB of memory; the
// files are removed. Exit status: 0 all as it should be, 1 not.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <chrono>
#include <fstream>
#include <numeric>

#include "tests/benchmarks/repeated_trace.h"
#include "trace/formats/importer.h"

namespace trainprof {
namespace {

constexpr const char* kMegabytes = "4500";        // > 4 GiB
constexpr uint64_t kFourGib = uint64_t{1} << 32;  // what 32 bits count
constexpr double kMaxBytesPerEvent = 150;

using Counts = std::array<uint64_t, 9>;

struct Outcome {
  Counts counts{};  // rows by table; device operations without a launch last
  double seconds = 0;
  double peak_bytes = 0;
};

Counts CountsOf(const Trace& t) {
  return {t.ranges.size(),
          t.api.size(),
          t.device_ops.size(),
          t.syncs.size(),
          t.instants.size(),
          t.counters.size(),
          t.flows.size(),
          t.others.size(),
          static_cast<uint64_t>(t.quality.CountOf("kernel_without_launch") +
                                t.quality.CountOf("copy_without_launch"))};
}

uint64_t Events(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end() - 1, uint64_t{0});
}

// In a child, whose peak is the import's alone. No counts: it failed.
Outcome Import(const std::string& path) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    const auto start = std::chrono::steady_clock::now();
    const Result<Trace> trace = ImportTrace(path);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    if (!trace.ok()) {
      fmt::print(stderr, "{}\n", trace.error());
      _exit(1);
    }
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const Outcome outcome{CountsOf(trace.value()), passed.count(),
                          static_cast<double>(usage.ru_maxrss) * 1024};
    _exit(write(ends[1], &outcome, sizeof(outcome)) == sizeof(outcome) ? 0 : 1);
  }
  close(ends[1]);
  Outcome outcome;
  if (read(ends[0], &outcome, sizeof(outcome)) != sizeof(outcome)) outcome = {};
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return outcome;
}

bool Gzip(const std::string& from, const std::string& to) {
  std::ifstream in(from, std::ios::binary);
  gzFile out = gzopen(to.c_str(), "wb1");
  if (out == nullptr) return false;
  std::string block(1 << 20, '\0');
  bool good = true;
  while (good &&
         (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0)) {
    const auto size = static_cast<unsigned>(in.gcount());
    good = gzwrite(out, block.data(), size) == static_cast<int>(size);
  }
  return gzclose(out) == Z_OK && good;
}

// Whether all counts are the same multiple of the single trace's.
bool IsMultiple(const Counts& counts, const Counts& single) {
  const uint64_t times = counts[0] / std::max<uint64_t>(single[0], 1);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != times * single[i]) return false;
  }
  return times > 1;
}

bool Report(const char* what, const Outcome& outcome, const Counts& single, uint64_t bytes) {
  const double events = static_cast<double>(std::max<uint64_t>(Events(outcome.counts), 1));
  const double per_event = outcome.peak_bytes / events;
  const bool complete = IsMultiple(outcome.counts, single);
  fmt::print("{}: {:.1f} million events, {:.0f} MB/s of JSON, peak {:.0f} MB, {:.0f} B/event; {}\n",
             what, events * 1e-6, static_cast<double>(bytes) * 1e-6 / outcome.seconds,
             outcome.peak_bytes * 1e-6, per_event,
             complete ? "every event arrived" : "EVENTS ARE MISSING");
  return complete && per_event <= kMaxBytesPerEvent;
}

int Run() {
  setenv("TRAINPROF_BENCHMARK_MB", "1", 1);
  Outcome single;
  {
    const RepeatedTrace once;
    if (once.path().empty()) {
      std::puts("the input could not be written");
      return 1;
    }
    single = Import(once.path());
  }
  setenv("TRAINPROF_BENCHMARK_MB", kMegabytes, 1);
  const RepeatedTrace trace;
  if (trace.path().empty() || trace.size() <= kFourGib) {
    std::puts("the input could not be written: 5 GB of disk are needed");
    return 1;
  }
  bool good = Report("plain", Import(trace.path()), single.counts, trace.size());
  const std::string gzip = trace.path() + ".gz";
  if (Gzip(trace.path(), gzip)) {
    good &= Report("gzip", Import(gzip), single.counts, trace.size());
  } else {
    std::puts("the gzip file could not be written");
    good = false;
  }
  std::remove(gzip.c_str());
  return good ? 0 : 1;
}

}  // namespace
}  // namespace trainprof

int main() { return trainprof::Run(); }
