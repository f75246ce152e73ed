// Reads a host sampler's file, raw (also while it grows) or sealed, and seals it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "trace/base/result.h"
#include "trace/recording/files/host_format.h"

namespace trainprof::recording {

struct HostFile {
  std::filesystem::path path;
  HostHeader header{};
  std::vector<char> frames;  // one after another, inflated
  bool whole = true;         // false: a sealed file is cut or damaged; what came before is there

  std::string_view host() const;
  std::string_view boot_id() const;
};

// The samplers' files of a run directory that have the prefix, by name; the sealed one alone where
// both stand.
std::vector<std::filesystem::path> HostFilesIn(const std::filesystem::path& run_dir,
                                               const char* prefix = kHostPrefix);

// Fails when the file cannot be read or its header is none of ours; damaged frames are left to the
// decoder. Reads at most kMostHostFileBytes.
Result<HostFile> ReadHostFile(const std::filesystem::path& path);

// Compresses a file whose sampler has ended; the raw one goes when the sealed one is on disk. A
// failure leaves the raw file, which reads as well.
Result<void> SealHostFile(const std::filesystem::path& path);

// What a decoder meets, in the order of the file.
class HostSink {
 public:
  struct Value {
    uint32_t metric;
    uint64_t value;
  };
  virtual ~HostSink() = default;
  // `id` counts entities over the whole file, from 0: at most the number of kDefine items. Said
  // again with another text when a process becomes another program.
  virtual void OnDefine(uint32_t id, const HostEntity& entity) = 0;
  // All values of one sample of the entity, by metric. The span lives as long as the call.
  virtual void OnValues(uint32_t id, int64_t monotonic_ns, std::span<const Value> values) = 0;
  virtual void OnEnd(uint32_t id) = 0;
  virtual void OnFact(std::string_view key, std::string_view text) = 0;
};

// Decodes all frames that are whole. Returns how many stretches of bytes were none (a damaged frame
// and what cannot be understood without it is one); a torn tail is not counted. O(bytes).
int64_t DecodeHostFrames(std::span<const char> frames, HostSink& sink);

}  // namespace trainprof::recording
