#include "collectors/host/adopt.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/host/process_state.h"
#include "collectors/host/system.h"

namespace trainprof::collectors {

using recording::SegmentHeader;

namespace {

SegmentHeader* MapHeader(const char* path) {
  const int fd = OpenFile(path, O_RDWR);
  if (fd < 0) return nullptr;
  uint64_t magic = 0;
  int error = 0;
  void* map = nullptr;
  // The file must really be that long: reading past the end of a mapped file kills.
  if (pread(fd, &magic, sizeof magic, 0) == sizeof magic && magic == recording::kSegmentMagic &&
      lseek(fd, 0, SEEK_END) >= static_cast<off_t>(sizeof(SegmentHeader))) {
    map = MapShared(fd, 0, sizeof(SegmentHeader), true, &error);
  }
  CloseFile(fd);
  return static_cast<SegmentHeader*>(map);
}

}  // namespace

bool AdoptSegment(const char* run_directory, const char* segment_path) {
  auto* state = static_cast<ProcessState*>(AllocatePages(sizeof(ProcessState)));
  if (state == nullptr || !MapRunControl(run_directory)) return false;
  state->segment = MapHeader(segment_path);
  if (state->segment == nullptr) return false;
  snprintf(state->segment_path, sizeof state->segment_path, "%s", segment_path);
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
