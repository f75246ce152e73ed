#include "collectors/python/own_stack.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <atomic>

#include "collectors/core/old_glibc.h"
#include "collectors/python/layout.h"
#include "collectors/python/line_table.h"

namespace trainprof::collectors {
namespace {

// _PyInterpreterFrame::owner of frames that belong to no Python function.
constexpr uint8_t kOwnedByC = 3;
constexpr int64_t kUnitBytes = 2;        // of bytecode
constexpr uint32_t kMostSteps = 4096;    // of a walk, frames without a function included
constexpr size_t kMostCharacters = 512;  // of a name; the rest is cut

struct Python {
  PythonLayout layout;
  const char* code_type;
  const char* (*this_thread)();  // PyGILState_GetThisThreadState
};

// Written once. Forked children have it, as they have the interpreter.
Python g_found;
constinit bool g_is_known = false;                       // read under the GIL
constinit std::atomic<const Python*> g_python{nullptr};  // while any thread may ask

template <class T>
T At(const char* object, size_t offset) {
  T value;
  memcpy(&value, object + offset, sizeof value);
  return value;
}

void Mix(uint64_t* hash, const void* value) {
  *hash = (*hash ^ reinterpret_cast<uintptr_t>(value)) * 0x9E3779B97F4A7C15;
  *hash ^= *hash >> 29;
}

OwnCode CodeAt(const PythonLayout& layout, const char* code) {
  return {code, At<const char*>(code, layout.name), At<const char*>(code, layout.lines),
          At<const char*>(code, layout.file)};
}

bool PassesNone(const OwnCode&) { return false; }

bool Read(const Python& python, OwnStack* stack, bool (*passes_over)(const OwnCode&) = PassesNone,
          uint32_t most_frames = OwnStack::kMostFrames) {
  const PythonLayout& layout = python.layout;
  stack->count = 0;
  stack->hash = 0;
  const char* const thread = python.this_thread();
  if (thread == nullptr) return false;
  const char* frame = At<const char*>(thread, layout.frame);
  if (layout.frame_in_holder >= 0 && frame != nullptr) {
    frame = At<const char*>(frame, static_cast<size_t>(layout.frame_in_holder));
  }
  for (uint32_t step = 0; frame != nullptr && step < kMostSteps; ++step) {
    const char* const here = frame;
    frame = At<const char*>(here, layout.previous);
    if (layout.has_frame_stack() && At<uint8_t>(here, layout.owner) == kOwnedByC) continue;
    const char* const code = At<const char*>(here, layout.code);
    if (code == nullptr || At<const char*>(code, kObjectType) != python.code_type) return false;
    const OwnCode identity = CodeAt(layout, code);
    if (stack->count == 0 && passes_over(identity)) continue;
    OwnStack::Frame& out = stack->frame[stack->count++];
    out.code = code;
    out.instruction = layout.has_frame_stack()
                          ? At<const char*>(here, layout.instruction) - code - layout.instructions
                          : At<int32_t>(here, layout.instruction) * kUnitBytes;
    // A code object that is gone may have left its place to another one.
    Mix(&stack->hash, code);
    Mix(&stack->hash, reinterpret_cast<const void*>(out.instruction));
    Mix(&stack->hash, identity.name);
    Mix(&stack->hash, identity.lines);
    if (stack->count == most_frames) break;
  }
  return stack->count > 0;
}

int64_t LineOfFrame(const Python& python, const OwnStack::Frame& frame) {
  const PythonLayout& layout = python.layout;
  const char* const table = At<const char*>(frame.code, layout.lines);
  const auto bytes = reinterpret_cast<const uint8_t*>(table + layout.bytes_data);
  return LineOf(layout.minor, {bytes, At<size_t>(table, kObjectSize)},
                At<int32_t>(frame.code, layout.first_line), frame.instruction);
}

uint32_t PutUtf8(uint32_t c, char* out) {
  if (c < 0x80) {
    out[0] = static_cast<char>(c);
    return 1;
  }
  const uint32_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out[0] = static_cast<char>(kFirst[more] | c >> (6 * more));
  for (uint32_t i = 1; i <= more; ++i) {
    out[i] = static_cast<char>(0x80 | (c >> (6 * (more - i)) & 0x3F));
  }
  return more + 1;
}

// A text of Python's as UTF-8 of at most 4 * kMostCharacters bytes; "?" where it is of a class of
// the user's. Its state word: two bits, three of the characters' width, "they follow the header",
// "ASCII".
uint32_t PutText(const PythonLayout& layout, const char* text, char* out) {
  constexpr size_t kLength = 16, kState = 32;
  const auto state = At<uint32_t>(text, kState);
  const uint32_t width = state >> 2 & 7;
  const bool is_compact = (state >> 5 & 1) != 0;
  const bool is_ascii = (state >> 6 & 1) != 0;
  if (!is_compact || (width != 1 && width != 2 && width != 4)) {
    *out = '?';
    return 1;
  }
  size_t length = At<size_t>(text, kLength);
  if (length > kMostCharacters) length = kMostCharacters;
  const char* const data = text + (is_ascii ? layout.ascii_data : layout.text_data);
  uint32_t bytes = 0;
  for (size_t i = 0; i < length; ++i) {
    uint32_t c = 0;
    memcpy(&c, data + i * width, width);
    bytes += PutUtf8(c == '\n' ? ' ' : c, out + bytes);
  }
  return bytes;
}

}  // namespace

bool StartOwnStacks(int minor, const void* const* codes, const int32_t* lines, uint32_t count) {
  if (g_python.load(std::memory_order_acquire) != nullptr) return true;
  Python& python = g_found;
  const auto runtime = static_cast<const char*>(dlsym(RTLD_DEFAULT, "_PyRuntime"));
  const auto getter = dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState");
  if (runtime == nullptr || getter == nullptr || count == 0) return false;
  if (const auto known = LayoutOf(minor)) {
    python.layout = *known;
  } else {
    const ToldLayout told = LayoutFromDebugOffsets({runtime, kDebugOffsetsBytes});
    if (told.fault != LayoutFault::kNone || told.layout.minor != minor) return false;
    python.layout = told.layout;
  }
  python.this_thread = reinterpret_cast<const char* (*)()>(getter);
  python.code_type = At<const char*>(static_cast<const char*>(codes[0]), kObjectType);
  OwnStack stack;
  if (!Read(python, &stack) || stack.count < count) return false;
  for (uint32_t i = 0; i < count; ++i) {
    if (stack.frame[i].code != codes[i] || LineOfFrame(python, stack.frame[i]) != lines[i]) {
      return false;
    }
  }
  g_is_known = true;
  g_python.store(&python, std::memory_order_release);
  return true;
}

void StopOwnStacks() { g_python.store(nullptr, std::memory_order_release); }

bool ReadOwnStack(OwnStack* stack) {
  const Python* const python = g_python.load(std::memory_order_acquire);
  if (python != nullptr && Read(*python, stack)) return true;
  stack->count = 0;
  stack->hash = 0;
  return false;
}

bool KnowsOwnStacks() { return g_is_known; }

bool ReadOwnStackFrom(bool (*passes_over)(const OwnCode&), uint32_t most_frames, OwnStack* stack) {
  if (g_is_known && Read(g_found, stack, passes_over, most_frames)) return true;
  stack->count = 0;
  stack->hash = 0;
  return false;
}

uint32_t SpellFile(const OwnCode& code, char* text) {
  static_assert(kMostPathBytes >= 4 * kMostCharacters);
  return PutText(g_found.layout, code.file, text);
}

uint32_t SpellStack(const OwnStack& stack, char* text, uint32_t size) {
  const PythonLayout& layout = g_found.layout;
  uint32_t used = 0;
  for (uint32_t i = 0; i < stack.count; ++i) {
    constexpr uint32_t kMostOfNumber = 24;
    char line[kMostOfNumber + 2 * 4 * kMostCharacters + 2];
    const OwnStack::Frame& frame = stack.frame[i];
    auto length = static_cast<uint32_t>(snprintf(
        line, kMostOfNumber, "%lld ", static_cast<long long>(LineOfFrame(g_found, frame))));
    length += PutText(layout, At<const char*>(frame.code, layout.name), line + length);
    line[length++] = ' ';
    length += PutText(layout, At<const char*>(frame.code, layout.file), line + length);
    line[length++] = '\n';
    if (length > size - used) break;
    memcpy(text + used, line, length);
    used += length;
  }
  return used;
}

}  // namespace trainprof::collectors
