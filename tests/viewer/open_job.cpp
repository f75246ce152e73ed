#include "tests/viewer/open_job.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "tests/support/trace_script.h"
#include "trace/formats/exporter.h"

namespace trainprof::testing {

const std::string_view kLoaderBoundScript = R"(
thread 1
repeat 12 every 10000
  step 0 9900 ProfilerStep#1
  annotation 0 2000 enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
  op   2100 2300 aten::mm
  call 2150 2200 cudaLaunchKernel | corr=100
  op   2400 6400 aten::item | stack=train.py(12): step
  call 2410 6390 cudaStreamSynchronize
end
stream 0 7
repeat 12 every 10000
  kernel 2300 6300 gemm_kernel | corr=100
end
)";

namespace fs = std::filesystem;

fs::path WriteJob(const fs::path& folder, const std::vector<std::string_view>& scripts) {
  fs::path path;
  for (size_t rank = 0; rank < scripts.size(); ++rank) {
    // As of our own, so that the exporter says what each event is.
    Trace trace = TraceFromScript("recording\n" + std::string(scripts[rank]));
    if (scripts.size() > 1) {
      trace.rank = static_cast<int64_t>(rank);
      trace.rank_known = true;
      trace.world_size = static_cast<int64_t>(scripts.size());
    }
    path = folder / fmt::format("rank{}.json", rank);
    const Result<void> written = ExportTrace(trace, path.string(), {});
    if (!written.ok()) throw std::runtime_error(written.error());
  }
  return scripts.size() > 1 ? folder : path;
}

void WaitForAll(State& state) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!state.document->progress().done) {
    if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error("still loading");
    UpdateDocument(state);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  UpdateDocument(state);
}

OpenJob::OpenJob(const std::vector<std::string_view>& scripts) {
  Open(state_, WriteJob(folder_.path(), scripts));
  WaitForAll(state_);
}

std::vector<EventRef> OpenJob::Named(std::string_view name) {
  const Result<Query> query = ParseQuery("name:\"" + std::string(name) + "\"");
  std::vector<EventRef> events;
  for (const EventRef& event : Search(state_.lines(), query.value()).events) {
    if (state_.lines().NameOf(event) == name) events.push_back(event);
  }
  return events;
}

}  // namespace trainprof::testing
