#include "tests/support/scratch_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace trainprof::testing {

ScratchFolder::ScratchFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "trainprof-test-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<char> ReadBytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteBytes(const std::filesystem::path& path, const std::vector<char>& bytes) {
  // Removed first: ext4 writes a file that is truncated and written anew to the disk at once.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void Damage(std::vector<char>& bytes, std::mt19937_64& random) {
  const size_t at = random() % bytes.size();
  if (random() % 4 == 0) {
    bytes.resize(at);
  } else {
    const size_t length = std::min<size_t>(1 + random() % 64, bytes.size() - at);
    for (size_t k = 0; k < length; ++k) bytes[at + k] ^= static_cast<char>(random() >> 60);
  }
}

}  // namespace trainprof::testing
