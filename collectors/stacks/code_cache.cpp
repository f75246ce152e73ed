#include "collectors/stacks/code_cache.h"

#include <string.h>

#include <algorithm>
#include <initializer_list>

#include "collectors/python/line_table.h"
#include "trace/base/names.h"
#include "trace/base/utf8.h"
#include "trace/symbols/hook_frames.h"

namespace trainprof {
namespace {

// Programs have thousands of functions. One that makes them without end starts the cache anew.
constexpr size_t kMostCodes = 1 << 14;
constexpr size_t kMostInstructions = 1 << 12;  // of one function, that were ever seen running
constexpr int64_t kMostCharacters = 512;       // of a name; the rest is cut
constexpr int64_t kMostTableBytes = 1 << 20;

template <class T>
T At(std::span<const char> bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// `width` bytes a character.
std::string ToUtf8(std::span<const char> data, size_t width) {
  std::string text;
  for (size_t at = 0; at + width <= data.size(); at += width) {
    uint32_t c = 0;
    memcpy(&c, data.data() + at, width);
    AppendUtf8(c, text);
  }
  return text;
}

}  // namespace

std::optional<CodeCache::Identity> CodeCache::IdentityOf(std::span<const char> head) const {
  if (At<uint64_t>(head, kObjectType) != place_.code_type) return std::nullopt;
  const PythonLayout& layout = place_.layout;
  return Identity{At<uint64_t>(head, layout.name), At<uint64_t>(head, layout.file),
                  At<uint64_t>(head, layout.lines), At<int32_t>(head, layout.first_line)};
}

// The state word of a text: two bits, then three of the characters' width, one for "the characters
// follow the header", one for ASCII.
std::optional<std::string> CodeCache::ReadText(uint64_t address, RemoteMemory& memory) const {
  constexpr size_t kLength = 16, kState = 32, kHeadBytes = 40;
  char head[kHeadBytes];
  if (!memory.Read(address, head)) return std::nullopt;
  const auto length = At<int64_t>(head, kLength);
  const auto state = At<uint32_t>(head, kState);
  const size_t width = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0;
  const bool is_ascii = (state >> 6 & 1) != 0;
  if (At<uint64_t>(head, kObjectType) != place_.text_type || length < 0 || !is_compact ||
      (width != 1 && width != 2 && width != 4)) {
    return std::nullopt;
  }
  const PythonLayout& layout = place_.layout;
  std::vector<char> data(static_cast<size_t>(std::min(length, kMostCharacters)) * width);
  const uint64_t from = address + (is_ascii ? layout.ascii_data : layout.text_data);
  if (!data.empty() && !memory.Read(from, data.data(), data.size())) return std::nullopt;
  return ToUtf8(data, width);
}

std::optional<CodeCache::Code> CodeCache::Read(uint64_t address, const Identity& identity,
                                               RemoteMemory& memory) const {
  const auto function = ReadText(identity.name, memory);
  const auto file = ReadText(identity.file, memory);
  if (!function || !file) return std::nullopt;
  char head[kObjectSize + sizeof(int64_t)];
  if (!memory.Read(identity.lines, head)) return std::nullopt;
  const auto size = At<int64_t>(head, kObjectSize);
  if (At<uint64_t>(head, kObjectType) != place_.bytes_type || size < 0 || size > kMostTableBytes) {
    return std::nullopt;
  }
  Code code{identity, *function, *file, std::vector<uint8_t>(static_cast<size_t>(size)), {}, {}};
  if (size > 0 && !memory.Read(identity.lines + place_.layout.bytes_data, code.lines.data(),
                               code.lines.size())) {
    return std::nullopt;
  }
  // All of it was still that code object's when it had been read.
  std::vector<char> again(place_.layout.code_bytes());
  if (!memory.Read(address, again.data(), again.size()) || IdentityOf(again) != identity) {
    return std::nullopt;
  }
  return code;
}

std::optional<uint32_t> CodeCache::FrameOf(uint64_t address, std::span<const char> head,
                                           int64_t instruction, RemoteMemory& memory,
                                           const NumberFrame& number) {
  const auto identity = IdentityOf(head);
  if (!identity) return std::nullopt;
  auto it = codes_.find(address);
  if (it == codes_.end() || it->second.identity != *identity) {
    std::optional<Code> code = Read(address, *identity, memory);
    if (!code) return std::nullopt;
    if (codes_.size() >= kMostCodes) codes_.clear();
    it = codes_.insert_or_assign(address, std::move(*code)).first;
  }
  Code& code = it->second;
  const auto known = code.frames.find(instruction);
  if (known != code.frames.end()) return known->second;
  if (code.frames.size() >= kMostInstructions) code.frames.clear();
  const int64_t line = LineOf(place_.layout.minor, code.lines, identity->first_line, instruction);
  return code.frames[instruction] = number(code.function, code.file, line);
}

// Whether the instruction takes a loop's next value. It stands in the source where what the loop
// runs over does, which may look like a call.
bool CodeCache::IsLoop(uint64_t address, int64_t instruction, RemoteMemory& memory) const {
  struct Codes {
    int minor;
    std::initializer_list<uint8_t> codes;  // FOR_ITER and its special forms (opcode_ids.h)
  };
  static const Codes kLoops[] = {
      {11, {93}}, {12, {93, 62, 63, 64, 65, 248}}, {13, {72, 187, 188, 189, 190, 243}}};
  uint8_t code = 0;
  const auto at = address + place_.layout.instructions + static_cast<uint64_t>(instruction);
  if (!memory.Read(at, code)) return true;
  for (const Codes& loops : kLoops) {
    if (loops.minor != place_.layout.minor) continue;
    return std::find(loops.codes.begin(), loops.codes.end(), code) != loops.codes.end();
  }
  return true;
}

std::optional<uint32_t> CodeCache::CallOf(uint64_t address, int64_t instruction,
                                          RemoteMemory& memory, const NumberFrame& number) {
  const auto it = codes_.find(address);
  if (it == codes_.end() || instruction < 0) return std::nullopt;
  Code& code = it->second;
  if (const auto known = code.calls.find(instruction); known != code.calls.end()) {
    return known->second;
  }
  if (code.calls.size() >= kMostInstructions) code.calls.clear();
  std::optional<uint32_t>& call = code.calls[instruction];
  if (IsHookFrame(code.file) || IsLoop(address, instruction, memory)) return call;
  const SourceSpan span =
      SpanOf(place_.layout.minor, code.lines, code.identity.first_line, instruction);
  const std::string name = names_.At(code.file, span);
  if (!name.empty()) call = number(name, kBuiltInFile, 0);
  return call;
}

}  // namespace trainprof
