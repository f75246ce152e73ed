#include "tests/support/killed_run.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/support/segment_writer.h"
#include "trace/recording/seal/sealer.h"

namespace trainprof::testing {

namespace fs = std::filesystem;
using namespace collectors;

fs::path WriteKilledRun(const fs::path& run, int rank,
                        const std::function<void(KilledRun&)>& change) {
  if (!fs::exists(run / "run.ctl")) {
    fs::remove(run);  // an empty folder that a test has made
    (void)recording::CreateRun(run, {}).ok();
  }
  char folder[32];
  snprintf(folder, sizeof folder, "rank-%05d", rank);
  SegmentWriter writer(run / folder);
  writer.header().rank = rank;
  writer.header().clean_exit = 0;
  writer.header().clock_kind = recording::ClockKind::kMonotonic;
  writer.BeginWriter(0, 100, "main");
  writer.Push("step", 1000);
  writer.Pop(2000);
  writer.BeginWriter(1, 101, "gpu");
  writer.Finish();

  KilledRun killed{std::make_unique<SlotFileHeader>(), {}};
  SlotFileHeader& header = *killed.header;
  header.magic = kSlotFileMagic;
  header.slot_bytes = kSlotBytes;
  header.writer = 1;
  header.segment_identity = writer.header().identity;
  header.slots = 1;
  header.record_bytes[kKernelActivity] = sizeof(KernelRecord);
  header.slot[0].state = SlotState::kDelivered;
  header.slot[0].valid_bytes = sizeof killed.kernels;
  for (uint32_t i = 0; i < kKilledKernels; ++i) {
    KernelRecord& kernel = killed.kernels[i];
    kernel.kind = kKernelActivity;
    kernel.start = static_cast<uint64_t>(SegmentWriter::kOriginNs) + 100 * i;
    kernel.end = kernel.start + 50;
    kernel.stream = 7;
    kernel.correlation = i + 1;
  }
  change(killed);
  const fs::path slots = writer.path().string() + kSlotFileSuffix;
  std::ofstream file(slots, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(&header), sizeof header);
  file.seekp(kSlotBytes);
  file.write(reinterpret_cast<const char*>(killed.kernels), sizeof killed.kernels);
  file.seekp(2 * kSlotBytes - 1);
  file.put(0);
  return slots;
}

}  // namespace trainprof::testing
