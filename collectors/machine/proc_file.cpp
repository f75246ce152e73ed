#include "collectors/machine/proc_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <charconv>
#include <utility>

namespace trainprof {
namespace {

constexpr size_t kFirstBuffer = 16 << 10;
constexpr size_t kMostBytes = 8 << 20;  // beyond any file of /proc that we read

constexpr std::string_view kBlanks = " \t\n";

}  // namespace

ProcFile::ProcFile(ProcFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void ProcFile::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

std::optional<std::string_view> ProcFile::Read(std::string& buffer) {
  if (fd_ < 0) fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) return std::nullopt;
  if (buffer.size() < kFirstBuffer) buffer.resize(kFirstBuffer);
  size_t size = 0;
  // To the end of file: the kernel hands out long files in pieces.
  for (;;) {
    const ssize_t n =
        pread(fd_, buffer.data() + size, buffer.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      Close();
      return std::nullopt;
    }
    size += static_cast<size_t>(n);
    if (n == 0) return std::string_view(buffer.data(), size);
    if (size == buffer.size()) {
      if (size >= kMostBytes) return std::string_view(buffer.data(), size);
      buffer.resize(size * 2);
    }
  }
}

std::string_view Words::Next() {
  const size_t begin = rest_.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) {
    rest_ = {};
    return {};
  }
  const size_t end = rest_.find_first_of(kBlanks, begin);
  const std::string_view word = rest_.substr(begin, end - begin);
  rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end);
  return word;
}

uint64_t Words::Number() { return FirstNumber(Next()).value_or(0); }

void Words::Skip(int words) {
  for (int i = 0; i < words; ++i) Next();
}

std::optional<uint64_t> FirstNumber(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::optional<uint64_t> NumberAfter(std::string_view text, std::string_view key) {
  for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    std::string_view rest = text.substr(at + key.size());
    if (rest.empty() || (rest[0] != ' ' && rest[0] != ':' && rest[0] != '\t')) continue;
    if (rest[0] == ':') rest.remove_prefix(1);
    return FirstNumber(rest.substr(0, rest.find('\n')));
  }
  return std::nullopt;
}

}  // namespace trainprof
