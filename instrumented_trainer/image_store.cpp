// Layout: ROOT/shapes-v1-<size>px-<samples>-seed<seed>/{000000.jpg, ..., labels.txt}. The folder's
// name holds every parameter that the pixels depend on; labels.txt has one shape name a line.
#include "instrumented_trainer/image_store.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>

#include "instrumented_trainer/jpeg.h"
#include "instrumented_trainer/shapes.h"

namespace trainer {
namespace fs = std::filesystem;
namespace {

constexpr int kDrawingVersion = 1;  // raise it when shapes.cpp draws other pixels
constexpr int kJpegQuality = 90;
constexpr char kLabelsFile[] = "labels.txt";

std::string FolderName(const StoreParameters& p) {
  return "shapes-v" + std::to_string(kDrawingVersion) + "-" + std::to_string(p.size) + "px-" +
         std::to_string(p.samples) + "-seed" + std::to_string(p.seed);
}

std::string FileName(size_t index) {
  char name[32];
  std::snprintf(name, sizeof name, "%06zu.jpg", index);
  return name;
}

std::vector<int> ReadLabels(const fs::path& folder, int64_t samples) {
  const fs::path path = folder / kLabelsFile;
  const std::string advice = "; delete " + folder.string() + " and it is drawn again";
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path.string() + ": cannot open" + advice);
  std::vector<int> labels;
  std::string name;
  while (std::getline(file, name)) {
    const auto* found = std::find(kShapeNames.begin(), kShapeNames.end(), name);
    if (found == kShapeNames.end()) {
      throw std::runtime_error(path.string() + ", line " + std::to_string(labels.size() + 1) +
                               ": unknown shape '" + name + "'" + advice);
    }
    labels.push_back(static_cast<int>(found - kShapeNames.begin()));
  }
  if (static_cast<int64_t>(labels.size()) != samples) {
    throw std::runtime_error(path.string() + ": " + std::to_string(labels.size()) +
                             " labels, expected " + std::to_string(samples) + advice);
  }
  return labels;
}

// A folder that is removed again unless it was renamed into its place.
class PartialFolder {
 public:
  explicit PartialFolder(const fs::path& root) {
    std::string pattern = (root / ".partial-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error(root.string() + ": cannot create the data set: " +
                               std::strerror(errno) + "; choose another folder with --data");
    }
    path_ = pattern;
  }
  ~PartialFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  const fs::path& path() const { return path_; }

  // Another run may have finished the same data set meanwhile: then its one is used.
  void RenameTo(const fs::path& folder) {
    fs::permissions(path_, fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                               fs::perms::others_read | fs::perms::others_exec);
    std::error_code error;
    fs::rename(path_, folder, error);
    if (!error) {
      path_.clear();
    } else if (!fs::exists(folder / kLabelsFile)) {
      throw std::runtime_error(folder.string() +
                               ": cannot rename the data set into place: " + error.message());
    }
  }

 private:
  fs::path path_;
};

int LabelOf(size_t index) { return static_cast<int>(index % kShapeNames.size()); }

// Draws all files on all cores; the first error stops every thread and is thrown here.
void DrawFiles(const fs::path& folder, const StoreParameters& parameters) {
  std::atomic<size_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;
  const auto count = static_cast<size_t>(parameters.samples);
  const auto work = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) {
        WriteJpeg(
            folder / FileName(i),
            DrawShape(LabelOf(i), static_cast<int>(parameters.size), MixSeed(parameters.seed, i)),
            kJpegQuality);
      }
    } catch (...) {
      next = count;
      const std::lock_guard lock(error_mutex);
      error = std::current_exception();
    }
  };
  std::vector<std::jthread> threads;
  const unsigned others = std::max(1U, std::thread::hardware_concurrency()) - 1;
  for (unsigned i = 0; i < others; ++i) threads.emplace_back(work);
  work();
  threads.clear();
  if (error) std::rethrow_exception(error);
}

void WriteLabels(const fs::path& folder, int64_t samples) {
  std::ofstream file(folder / kLabelsFile);
  for (size_t i = 0; i < static_cast<size_t>(samples); ++i) {
    file << kShapeNames[static_cast<size_t>(LabelOf(i))] << '\n';
  }
  file.close();
  if (!file) throw std::runtime_error((folder / kLabelsFile).string() + ": cannot write");
}

}  // namespace

ImageStore OpenOrDraw(const fs::path& root, const StoreParameters& parameters) {
  ImageStore store;
  std::error_code error;
  fs::create_directories(root, error);
  if (error) {
    throw std::runtime_error(root.string() + ": cannot create the data folder: " + error.message() +
                             "; choose another with --data");
  }
  store.folder = fs::absolute(root) / FolderName(parameters);
  if (!fs::exists(store.folder)) {
    PartialFolder partial(fs::absolute(root));
    DrawFiles(partial.path(), parameters);
    WriteLabels(partial.path(), parameters.samples);
    partial.RenameTo(store.folder);
    store.drawn_now = true;
  }
  store.labels = ReadLabels(store.folder, parameters.samples);
  return store;
}

fs::path SamplePath(const ImageStore& store, size_t index) {
  return store.folder / FileName(index);
}

}  // namespace trainer
