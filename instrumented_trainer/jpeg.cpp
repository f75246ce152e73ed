// libjpeg-turbo's TurboJPEG interface, one compressor and one decompressor for each thread.
#include "instrumented_trainer/jpeg.h"

#include <turbojpeg.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

namespace trainer {
namespace {

struct HandleDeleter {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, HandleDeleter>;

struct BufferDeleter {
  void operator()(unsigned char* buffer) const { tjFree(buffer); }
};

[[noreturn]] void Fail(const std::filesystem::path& path, const std::string& what) {
  throw std::runtime_error(path.string() + ": " + what);
}

void ReadFile(const std::filesystem::path& path, std::vector<unsigned char>& bytes) {
  errno = 0;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) Fail(path, std::string("cannot open: ") + std::strerror(errno));
  const std::streamoff size = file.tellg();
  if (size <= 0) Fail(path, "the file is empty");
  bytes.resize(static_cast<size_t>(size));
  file.seekg(0);
  if (!file.read(reinterpret_cast<char*>(bytes.data()), size)) Fail(path, "cannot read");
}

}  // namespace

void WriteJpeg(const std::filesystem::path& path, const Image& image, int quality) {
  thread_local const Handle compressor(tjInitCompress());
  unsigned char* raw = nullptr;
  unsigned long size = 0;
  const int status = tjCompress2(compressor.get(), image.rgb.data(), image.width, 0, image.height,
                                 TJPF_RGB, &raw, &size, TJSAMP_420, quality, 0);
  const std::unique_ptr<unsigned char, BufferDeleter> buffer(raw);
  if (status != 0) Fail(path, std::string("cannot compress: ") + tjGetErrorStr2(compressor.get()));
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(buffer.get()), static_cast<std::streamsize>(size));
  file.close();
  if (!file) Fail(path, std::string("cannot write: ") + std::strerror(errno));
}

void ReadJpeg(const std::filesystem::path& path, Image& image) {
  thread_local const Handle decompressor(tjInitDecompress());
  thread_local std::vector<unsigned char> bytes;
  ReadFile(path, bytes);
  int subsampling = 0;
  int colour_space = 0;
  if (tjDecompressHeader3(decompressor.get(), bytes.data(), bytes.size(), &image.width,
                          &image.height, &subsampling, &colour_space) != 0) {
    Fail(path, std::string("not a JPEG file: ") + tjGetErrorStr2(decompressor.get()));
  }
  image.rgb.resize(static_cast<size_t>(image.width) * image.height * 3);
  if (tjDecompress2(decompressor.get(), bytes.data(), bytes.size(), image.rgb.data(), image.width,
                    0, image.height, TJPF_RGB, 0) != 0) {
    Fail(path, std::string("damaged JPEG file: ") + tjGetErrorStr2(decompressor.get()));
  }
}

}  // namespace trainer
