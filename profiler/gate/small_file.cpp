#include "profiler/gate/small_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace trainprof {

Result<std::string> ReadSmallFile(const std::filesystem::path& path, size_t most) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) {
    return Error{fmt::format("{}: there is no such file", path.string())};
  }
  if (!std::filesystem::is_regular_file(status)) {
    return Error{fmt::format("{}: this is no file", path.string())};
  }
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > most) {
    return Error{fmt::format("{}: {} bytes are too many, at most {}", path.string(), size, most)};
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(static_cast<size_t>(error ? 0 : size), '\0');
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (error || !file) {
    return Error{fmt::format("{}: cannot be read: {}", path.string(), std::strerror(errno))};
  }
  return text;
}

std::filesystem::path FileBelowHere(const std::filesystem::path& path) {
  std::error_code ignored;
  for (auto part = path.begin(); part != path.end(); ++part) {
    std::filesystem::path tail;
    for (auto rest = part; rest != path.end(); ++rest) {
      if (*rest != "/" && *rest != "..") tail /= *rest;
    }
    if (!tail.empty() && std::filesystem::is_regular_file(tail, ignored)) return tail;
  }
  return {};
}

}  // namespace trainprof
