// Where CPython keeps what a stack is made of: distances in bytes within its structures, which
// differ between its minor versions and stay within one. For who reads another process's memory as
// for who is in it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace trainprof {

struct PythonLayout {
  int minor = 0;  // of Python 3
  // _PyRuntimeState, PyInterpreterState
  uint32_t first_interpreter = 0;
  uint32_t next_interpreter = 0;
  uint32_t first_thread = 0;
  // PyThreadState
  uint32_t next_thread = 0;
  uint32_t pthread = 0;
  uint32_t tid = 0;              // of the kernel; 0: not kept (3.10)
  uint32_t frame = 0;            // the innermost frame, or what points at it:
  uint32_t frame_stack = 0;      // where the part of the stack that is used now begins; 0: 3.10
  int32_t frame_in_holder = -1;  // 3.11, 3.12: in the _PyCFrame that `frame` points at
  // _PyInterpreterFrame; PyFrameObject in 3.10
  uint32_t code = 0;
  uint32_t instruction = 0;
  uint32_t previous = 0;
  uint32_t owner = 0;  // 0: not kept (3.10)
  // PyCodeObject
  uint32_t instructions = 0;  // 3.10: another object's
  uint32_t name = 0;          // the qualified one, where there is one
  uint32_t file = 0;
  uint32_t first_line = 0;
  uint32_t lines = 0;
  // Characters behind the headers of PyASCIIObject and PyCompactUnicodeObject; bytes of PyBytesObject
  uint32_t ascii_data = 0;
  uint32_t text_data = 0;
  uint32_t bytes_data = 0;

  // Frames stand one behind the other, so that one read gets many: since 3.11.
  bool has_frame_stack() const { return owner != 0; }
  uint32_t thread_bytes() const;
  uint32_t frame_bytes() const;
  uint32_t code_bytes() const;
};

// Of PyObject and PyVarObject in all of these versions.
inline constexpr uint32_t kObjectType = 8;
inline constexpr uint32_t kObjectSize = 16;

// Of 3.10 to 3.12; nothing for other versions.
std::optional<PythonLayout> LayoutOf(int minor);

// Since 3.13 an interpreter says it itself, at the start of _PyRuntime (_Py_DebugOffsets, whose first
// bytes these are).
inline constexpr size_t kDebugOffsetsBytes = 352;
enum class LayoutFault { kNone, kSaysNothing, kUnknownVersion, kFreeThreaded, kCannotBe };
struct ToldLayout {
  LayoutFault fault = LayoutFault::kNone;
  PythonLayout layout{};  // but for `minor`, only where there is no fault
};
ToldLayout LayoutFromDebugOffsets(std::span<const char> runtime);

}  // namespace trainprof
