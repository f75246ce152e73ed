// Pictures as PNG files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "trace/base/result.h"

namespace trainprof {

// 4 bytes a pixel, rows from the top. Written as trace/io/output_file.h does.
Result<void> WritePng(const std::filesystem::path& path, int width, int height,
                      std::span<const uint8_t> pixels);

}  // namespace trainprof
