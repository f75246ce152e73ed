#include "viewer/platform/png_file.h"

#include <fmt/format.h>
#include <png.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include "trace/io/output_file.h"

namespace trainprof {

Result<void> WritePng(const std::filesystem::path& path, int width, int height,
                      std::span<const uint8_t> pixels) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGBA;
  char* bytes = nullptr;
  size_t size = 0;
  std::FILE* const memory = open_memstream(&bytes, &size);
  const bool made = memory != nullptr &&
                    png_image_write_to_stdio(&image, memory, 0, pixels.data(), 0, nullptr) != 0;
  const bool whole = memory != nullptr && std::fclose(memory) == 0 && made;
  const std::unique_ptr<char, decltype(&std::free)> owned(bytes, &std::free);
  if (!whole) {
    const char* const why = image.message[0] != 0 ? image.message : "no memory is left";
    return Error{fmt::format("{}: no picture could be made: {}", path.string(), why)};
  }
  return WriteOutputFile(path.string(), {bytes, size});
}

}  // namespace trainprof
