#include "collectors/nvtx/wide_text.h"

namespace trainprof::collectors {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

uint32_t Encode(uint32_t c, char* out) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = kReplacement;
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const auto tail = [c](int shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x800) {
    out[0] = static_cast<char>(0xC0 | c >> 6);
    out[1] = tail(0);
    return 2;
  }
  if (c < 0x10000) {
    out[0] = static_cast<char>(0xE0 | c >> 12);
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | c >> 18);
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

}  // namespace

Text MakeText(const wchar_t* text, WideBuffer* buffer) {
  static_assert(sizeof(wchar_t) == 4);
  if (text == nullptr) text = L"";
  uint32_t length = 0;
  bool truncated = false;
  for (; *text != 0; ++text) {
    char bytes[4];
    const uint32_t n = Encode(static_cast<uint32_t>(*text), bytes);
    if (length + n > sizeof buffer->bytes) {
      truncated = true;
      break;
    }
    memcpy(buffer->bytes + length, bytes, n);
    length += n;
  }
  return MakeText(buffer->bytes, length, truncated);
}

}  // namespace trainprof::collectors
