#include "viewer/platform/png_file.h"

#include <fmt/format.h>
#include <png.h>

#include <system_error>

namespace trainprof {

Result<void> WritePng(const std::filesystem::path& path, int width, int height,
                      std::span<const uint8_t> pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGBA;
  std::filesystem::path partial = path;
  partial += ".part";
  std::error_code error;
  if (!png_image_write_to_file(&image, partial.c_str(), 0, pixels.data(), 0, nullptr)) {
    std::filesystem::remove(partial, error);
    return Error{fmt::format("{}: cannot be written: {}", path.string(), image.message)};
  }
  std::filesystem::rename(partial, path, error);
  if (error) return Error{fmt::format("{}: cannot be written: {}", path.string(), error.message())};
  return {};
}

}  // namespace trainprof
