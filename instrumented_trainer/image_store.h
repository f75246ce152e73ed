// The data set on disk: a folder of JPEG files and their labels, drawn once and reused.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace trainer {

struct StoreParameters {
  int64_t samples = 0;
  int64_t size = 0;  // pixels per side
  uint64_t seed = 0;
};

struct ImageStore {
  std::filesystem::path folder;
  std::vector<int> labels;  // one a file, index into kShapeNames
  bool drawn_now = false;   // false: an earlier run had drawn it
};

// Opens the data set of these parameters below `root`, drawing it first where it is not there. It
// is drawn into a folder of another name that is renamed when complete, so an interrupted or
// concurrent run never leaves a half data set behind. Throws std::runtime_error that names the
// folder or file.
ImageStore OpenOrDraw(const std::filesystem::path& root, const StoreParameters& parameters);

// The JPEG file of one sample.
std::filesystem::path SamplePath(const ImageStore& store, size_t index);

}  // namespace trainer
