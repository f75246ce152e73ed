// Turns samples of the host into frames of its file, each holding what changed since the last one.
//
//   HostEncoder encoder(0);
//   const uint32_t disk = encoder.Add({.kind = HostEntityKind::kDisk, .text = "vda"});
//   encoder.Observe(disk, DiskMetric::kBusy, 120);
//   log.Append(encoder.TakeFrame(now_ns));
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trace/recording/files/frame_payload.h"
#include "trace/recording/files/host_format.h"

namespace trainprof::recording {

class HostEncoder {
 public:
  explicit HostEncoder(uint8_t stream) : frame_(stream) {}

  uint32_t Add(HostEntity entity);
  // A process that has become another program keeps its number.
  void Rename(uint32_t id, std::string_view text);
  void End(uint32_t id);

  template <class Metric>
  void Observe(uint32_t id, Metric metric, uint64_t value) {
    Observe(id, static_cast<uint32_t>(metric), value);
  }
  void Observe(uint32_t id, uint32_t metric, uint64_t value);
  // Something that is said once ("NVML": "libnvidia-ml.so.1 is not installed").
  void Fact(std::string_view key, std::string_view text);

  // All since the last frame as one frame, ready to be appended to the file; empty when there is
  // nothing. Valid until the next call. O(what was observed).
  std::span<const char> TakeFrame(int64_t monotonic_ns);

 private:
  struct Entity {
    HostEntity what;
    bool announced = false;
    std::vector<uint64_t> observed;  // bits, of this frame
    std::vector<uint64_t> value;     // by metric, of this frame
    std::vector<uint64_t> last;      // by metric, as the reader has it
  };
  void Restate();
  void EncodeDefinition(uint32_t id, Entity& entity);
  void EncodeValues(uint32_t id, Entity& entity);

  uint32_t next_id_ = 0;
  uint32_t frames_ = 0;
  int64_t last_ns_ = 0;
  std::map<uint32_t, Entity> entities_;
  std::vector<uint32_t> ended_;
  std::vector<std::pair<std::string, std::string>> facts_;
  size_t facts_said_ = 0;
  FrameWriter frame_;
};

}  // namespace trainprof::recording
