// JPEG files in and out, through libjpeg-turbo. Errors are std::runtime_error and name the file.
#pragma once

#include <filesystem>

#include "instrumented_trainer/shapes.h"

namespace trainer {

void WriteJpeg(const std::filesystem::path& path, const Image& image, int quality);

// Decodes into `image`, whose memory is reused. A file that decodes with warnings (cut off,
// damaged) is refused: a half-grey picture is not a sample.
void ReadJpeg(const std::filesystem::path& path, Image& image);

}  // namespace trainer
