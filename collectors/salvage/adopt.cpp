#include "collectors/salvage/adopt.h"

#include <string.h>
#include <unistd.h>

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"

namespace trainprof::collectors {

using recording::SegmentHeader;

namespace {

SegmentHeader* MapHeader(int fd) {
  uint64_t magic = 0;
  int error = 0;
  const off_t bytes = lseek(fd, 0, SEEK_END);
  // The file must really be that long: reading past the end of a mapped file kills.
  if (pread(fd, &magic, sizeof magic, 0) != sizeof magic || magic != recording::kSegmentMagic ||
      bytes < static_cast<off_t>(sizeof(SegmentHeader))) {
    return nullptr;
  }
  auto* header = static_cast<SegmentHeader*>(MapShared(fd, 0, sizeof(SegmentHeader), &error));
  if (header == nullptr || header->header_bytes == 0) return nullptr;
  // Behind all that is there, whatever a damaged header says: nobody else claims any more.
  const auto step = static_cast<uint64_t>(header->header_bytes);
  header->next_offset.store((static_cast<uint64_t>(bytes) + step - 1) / step * step);
  return header;
}

}  // namespace

bool AdoptSegment(int run_directory, int segment) {
  auto* state = static_cast<ProcessState*>(AllocatePages(sizeof(ProcessState)));
  if (state == nullptr || !MapRunControlIn(run_directory)) return false;
  state->segment = MapHeader(segment);
  if (state->segment == nullptr) return false;
  state->adopted = segment + 1;
  g_runtime.clock = state->segment->clock_kind;
  g_runtime.options = Options{};
  char options[sizeof state->segment->options + 1] = {};
  memcpy(options, state->segment->options, sizeof state->segment->options);
  ParseOptions(options, &g_runtime.options);
  g_runtime.state.Publish(state);
  return true;
}

void ReleaseSegment() {
  ProcessState* state = g_runtime.state.get();
  if (state == nullptr || state->segment == nullptr) return;
  ReleasePages(state->segment, sizeof(SegmentHeader));
  state->segment = nullptr;
}

}  // namespace trainprof::collectors
