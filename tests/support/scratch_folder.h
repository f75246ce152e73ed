// A folder that is removed with its contents.
#pragma once

#include <filesystem>
#include <random>
#include <vector>

namespace trainprof::testing {

class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  std::filesystem::path operator/(const char* name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::vector<char> ReadBytes(const std::filesystem::path& path);
void WriteBytes(const std::filesystem::path& path, const std::vector<char>& bytes);
// Cuts a file's bytes off somewhere, or flips bits of up to 64 in a row.
void Damage(std::vector<char>& bytes, std::mt19937_64& random);

}  // namespace trainprof::testing
