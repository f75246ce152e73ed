#include "collectors/core/segment_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collectors/core/process_state.h"
#include "collectors/core/system.h"
#include "trace/recording/wire/access.h"
#include "trace/recording/wire/process_place.h"
#include "trace/recording/wire/secrets.h"
#include "trace/recording/wire/tick_clock.h"

namespace trainprof::collectors {

using recording::ChunkHeader;
using recording::RunControl;
using recording::SegmentHeader;

namespace {

// A process that has no rank looks so far up for one that records already.
constexpr int kMostAncestors = 16;
// A chunk is at most this part of the size bound, so that a small bound serves many writers.
constexpr uint64_t kChunksInBound = 64;

uint32_t Alignment() {
  const size_t page = PageSize();
  return page > recording::kChunkAlignment ? static_cast<uint32_t>(page)
                                           : recording::kChunkAlignment;
}

uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

// Adds `size` to the bytes of the run, unless that would pass `bound`.
bool Reserve(uint64_t size, uint64_t bound) {
  RunControl& control = *g_runtime.control;
  uint64_t used = control.used_bytes.load(std::memory_order_relaxed);
  while (used <= bound && size <= bound - used) {
    if (control.used_bytes.compare_exchange_weak(used, used + size)) return true;
  }
  return false;
}

void Unreserve(uint64_t size) { g_runtime.control->used_bytes.fetch_sub(size); }

// "-a3c8271d": our pid namespace and boot, in which the ids of processes are their own; "" where
// they are not known.
void PlaceSuffix(char (&suffix)[16]) {
  char boot[64];
  char link[64];
  const int boot_bytes = ReadSmallFile(recording::kBootIdFile, boot, sizeof boot);
  const int link_bytes = ReadLink(recording::kPidNamespaceLink, link, sizeof link);
  const uint32_t place =
      recording::PlaceOf(boot, boot_bytes < 0 ? 0 : static_cast<size_t>(boot_bytes), link,
                         link_bytes < 0 ? 0 : static_cast<size_t>(link_bytes));
  suffix[0] = 0;
  if (place != 0) snprintf(suffix, sizeof suffix, "-%08x", place);
}

// Spawned workers record beside the process that spawned them; ranks have a folder each.
void ChooseFolder(const char* place, char* folder, size_t size) {
  if (g_runtime.options.rank >= 0) {
    snprintf(folder, size, "rank-%05d", g_runtime.options.rank);
    return;
  }
  int pid = ProcessId();
  for (int i = 0; i < kMostAncestors && pid > 1; ++i) {
    uint64_t start = 0;
    if (!ReadProcessStat(pid, &pid, &start)) break;
    char path[sizeof(Options::run_directory) + 64];
    snprintf(path, sizeof path, "%s/pid-%d%s", g_runtime.options.run_directory, pid, place);
    if (FolderExists(path)) {
      snprintf(folder, size, "pid-%d%s", pid, place);
      return;
    }
  }
  snprintf(folder, size, "pid-%d%s", ProcessId(), place);
}

mode_t RunMode() { return static_cast<mode_t>(FolderMode(g_runtime.options.run_directory)); }

void ReadCommand(char* out, size_t size) {
  char arguments[sizeof(SegmentHeader::command)];
  const int n = ReadSmallFile("/proc/self/cmdline", arguments, sizeof arguments);
  if (n <= 0) return;
  size_t length = static_cast<size_t>(n);
  if (g_runtime.options.no_command_line) length = strnlen(arguments, length);
  recording::MaskSecrets(arguments, length, ' ', out, size - 1);
}

void FillHeader(SegmentHeader* header, uint32_t header_bytes) {
  header->version = recording::kFormatVersion;
  header->header_bytes = header_bytes;
  header->clock_kind = g_runtime.clock;
  header->rank = g_runtime.options.rank;
  header->pid = ProcessId();
  int parent = ParentProcessId();
  ReadProcessStat(header->pid, &parent, &header->process_start);
  header->parent_pid = parent;
  header->opened = recording::SampleClockTriple(g_runtime.clock);
  gethostname(header->host, sizeof header->host - 1);
  ReadSmallFile(recording::kBootIdFile, header->boot_id, sizeof header->boot_id);
  memcpy(header->options, g_runtime.options.text, sizeof header->options);
  ReadCommand(header->command, sizeof header->command);
  // Ticks and pid of the moment: no two segments of a place share both.
  header->identity = header->opened.ticks * 0x9E3779B97F4A7C15 ^
                     static_cast<uint64_t>(header->pid) << 32 ^ header->process_start ^
                     recording::CheckOf(header->boot_id, sizeof header->boot_id) ^
                     static_cast<uint64_t>(header->opened.realtime_ns);
  header->next_offset.store(header_bytes, std::memory_order_relaxed);
  header->whole_bytes.store(header_bytes, std::memory_order_relaxed);
}

// A name that no other process has, here or in another container or host that shares the run's
// folder. Puts it into the state; the file's descriptor, or a negative errno.
int CreateNamed(const char* place) {
  constexpr int kMostTries = 100;  // of clocks that hardly move
  char* path = g_runtime.state->segment_path;
  const size_t size = sizeof g_runtime.state->segment_path;
  const int64_t now = recording::ReadClock(CLOCK_REALTIME);
  int fd = -EEXIST;
  for (int i = 0; i < kMostTries && fd == -EEXIST; ++i) {
    snprintf(path, size, "%s/%s/%d-%lld%s%s", g_runtime.options.run_directory, g_runtime.folder,
             ProcessId(), static_cast<long long>(now + i), place, recording::kSegmentSuffix);
    fd = CreateFile(path, RunFileMode());
  }
  return fd;
}

// Creates the segment and gives back its mapped first bytes, or nullptr after Fail().
SegmentHeader* CreateSegment(uint32_t header_bytes) {
  char* path = g_runtime.state->segment_path;
  const size_t size = sizeof g_runtime.state->segment_path;
  char place[16];
  PlaceSuffix(place);
  if (g_runtime.folder[0] == 0) ChooseFolder(place, g_runtime.folder, sizeof g_runtime.folder);
  snprintf(path, size, "%s/%s", g_runtime.options.run_directory, g_runtime.folder);
  int error = MakeFolder(path, static_cast<int>(recording::FolderModeIn(RunMode())));
  if (error < 0) {
    Fail("cannot make the folder of this process in the run directory", error);
    return nullptr;
  }
  const int fd = CreateNamed(place);
  if (fd < 0) {
    Fail("cannot create a segment in the run directory", fd);
    return nullptr;
  }
  error = AllocateBlocks(fd, 0, header_bytes);
  void* map = error < 0 ? nullptr : MapShared(fd, 0, sizeof(SegmentHeader), &error);
  CloseFile(fd);
  if (map != nullptr) return static_cast<SegmentHeader*>(map);
  unlink(path);
  Fail("cannot get room for a segment in the run directory", error);
  return nullptr;
}

void Restrict(uint32_t bit) {
  if (RaiseGate(bit)) SignalFollowers();
}

// Takes room within the bounds: the preferred size, else the smallest. 0: none.
uint64_t ReserveChunk(const ChunkRequest& request) {
  const RunControl& control = *g_runtime.control;
  const SegmentHeader& segment = *g_runtime.state->segment;
  const uint64_t smallest = RoundUp(request.smallest_bytes, segment.header_bytes);
  const uint64_t share = control.max_bytes / kChunksInBound;
  const uint64_t preferred = RoundUp(
      request.preferred_bytes < share ? request.preferred_bytes : share, segment.header_bytes);
  const bool thin = !g_runtime.options.full && control.max_bytes != UINT64_MAX;
  const uint64_t detail_bound = control.max_bytes - control.max_bytes / 4;
  for (const uint64_t size : {preferred, smallest}) {
    if (size < smallest) continue;
    if (!thin) {
      if (Reserve(size, control.max_bytes)) return size;
      continue;
    }
    if (Reserve(size, detail_bound)) return size;
    if (size != smallest) continue;
    Restrict(kGatePhasesOnly);
    if (request.phase && Reserve(size, control.max_bytes)) return size;
  }
  return 0;
}

ChunkHeader* MapNewChunk(uint64_t offset, uint64_t size, int* error) {
  const ProcessState& state = *g_runtime.state;
  const int fd = state.adopted != 0 ? DuplicateFile(state.adopted - 1)
                                    : OpenRecorded(state.segment_path, O_RDWR);
  if (fd < 0) {
    *error = fd;
    return nullptr;
  }
  *error = AllocatePagesOfFile(fd, offset, size);
  void* map = *error < 0 ? nullptr : MapShared(fd, offset, size, error);
  CloseFile(fd);
  return static_cast<ChunkHeader*>(map);
}

// A clean exit says that every claim is finished. One that others are at says so itself at its end,
// if the process gets that far. Looked at twice, since a claim that begins takes the word back.
void MarkCleanExit() {
  ProcessState& state = *g_runtime.state;
  std::atomic<uint32_t>& clean = state.segment->clean_exit;
  clean.store(state.claims.load() == 0 ? 1 : 0);
  if (state.claims.load() != 0) clean.store(0);
}

class Claiming {
 public:
  Claiming() {
    g_runtime.state->claims.fetch_add(1);
    if (g_runtime.state->exiting.load() != 0) g_runtime.state->segment->clean_exit.store(0);
  }
  Claiming(const Claiming&) = delete;
  Claiming& operator=(const Claiming&) = delete;
  ~Claiming() {
    g_runtime.state->claims.fetch_sub(1);
    if (g_runtime.state->exiting.load() != 0) MarkCleanExit();
  }
};

void MarkFirst(std::atomic<uint64_t>& first_ticks) {
  if (first_ticks.load(std::memory_order_relaxed) != 0) return;
  uint64_t none = 0;
  first_ticks.compare_exchange_strong(none, recording::ReadTicks(g_runtime.clock));
}

}  // namespace

int RunFileMode() { return static_cast<int>(recording::FileModeIn(RunMode())); }

void OpenSegment() {
  const uint32_t header_bytes = Alignment();
  if (!Reserve(header_bytes, g_runtime.control->max_bytes)) {
    RaiseGate(kGateFull);
    Fail("the size bound of the run is used up, no segment for this process", -EDQUOT);
    return;
  }
  SegmentHeader* header = CreateSegment(header_bytes);
  if (header == nullptr) {
    Unreserve(header_bytes);
    return;
  }
  FillHeader(header, header_bytes);
  header->magic = recording::kSegmentMagic;
  header->static_check = recording::CheckOf(header, offsetof(SegmentHeader, static_check));
  g_runtime.state->segment = header;
}

void CloseSegment() {
  ProcessState* state = g_runtime.state.get();
  if (state == nullptr || state->generation.load(std::memory_order_acquire) == 0) return;
  SegmentHeader* segment = state->segment;
  if (segment == nullptr) return;
  segment->closed = recording::SampleClockTriple(g_runtime.clock);
  state->exiting.store(1);
  MarkCleanExit();
}

ClaimResult ClaimChunk(const ChunkRequest& request, ChunkHeader** chunk) {
  ProcessState& state = *g_runtime.state;
  if (state.segment == nullptr || (state.gate.load() & kGateFailed) != 0) {
    return ClaimResult::kFailed;
  }
  SegmentHeader& segment = *state.segment;
  const uint64_t size = ReserveChunk(request);
  if (size == 0) {
    if (!request.phase && !g_runtime.options.full) return ClaimResult::kThinned;
    Restrict(kGateFull);
    return ClaimResult::kFull;
  }
  const Claiming claiming;
  const uint64_t offset = segment.next_offset.fetch_add(size);
  int error = 0;
  ChunkHeader* header = MapNewChunk(offset, size, &error);
  if (header == nullptr) {
    Unreserve(size);
    Fail("cannot grow the segment", error);
    return ClaimResult::kFailed;
  }
  header->magic = recording::kChunkMagic;
  header->identity = segment.identity;
  header->file_offset = offset;
  header->size_bytes = static_cast<uint32_t>(size);
  FillChunkHeader(request, header);
  segment.whole_bytes.fetch_add(size);
  *chunk = header;
  return ClaimResult::kClaimed;
}

void CountDrop(ChunkHeader* chunk, bool detail) {
  if (auto* segment = g_runtime.state->segment) {
    MarkFirst(detail ? segment->first_detail_drop_ticks : segment->first_drop_ticks);
  }
  if (chunk == nullptr) return CountLost(detail);
  auto& counter = detail ? chunk->dropped_detail : chunk->dropped_all;  // of this writer alone
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void FillChunkHeader(const ChunkRequest& request, ChunkHeader* chunk) {
  chunk->kind = request.kind;
  chunk->row_bytes = request.row_bytes;
  chunk->writer = request.writer;
  chunk->sequence = request.sequence;
  chunk->opened = recording::SampleClockTriple(g_runtime.clock);
  // Readers take the header for written when the check holds; `committed` is released after it.
  chunk->static_check = recording::CheckOf(chunk, offsetof(ChunkHeader, static_check));
}

void UnmapChunk(ChunkHeader* chunk) { ReleasePages(chunk, chunk->size_bytes); }

}  // namespace trainprof::collectors
