// What making a batch consists of, by the functions that are called for it: reading, decoding,
// transforming, as far as their names are known.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "trace/tables/trace.h"

namespace trainprof {

enum class BatchWork : uint8_t {
  kOther,         // the user's own Python code, and calls that are not known
  kReading,       // files, sockets: open, f.read, np.load, h5py, parquet
  kDecoding,      // images, sound, compressed data, JSON: PIL, cv2.imdecode, zlib, pickle.loads
  kTransforming,  // torchvision.transforms, PIL's and OpenCV's operations, numpy, tokenizers
  kCollating,     // samples to a batch
};
inline constexpr std::string_view kBatchWorkNames[] = {"other", "reading", "decoding",
                                                       "transforming", "collating"};
inline constexpr size_t kBatchWorks = std::size(kBatchWorkNames);
constexpr std::span<const std::string_view> NamesOf(BatchWork) { return kBatchWorkNames; }
constexpr std::string_view Name(BatchWork work) {
  return kBatchWorkNames[static_cast<size_t>(work)];
}

// By one function of a stack. `file`: its path, or kBuiltInFile, where `function` is the call as its
// caller's source spells it. kOther: nothing that is known.
BatchWork WorkOf(std::string_view function, std::string_view file);

// By the innermost function that is known, up to the user's innermost own one. O(frames).
BatchWork WorkOf(const Trace& trace, StackId stack);

}  // namespace trainprof
