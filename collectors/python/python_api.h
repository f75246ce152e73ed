// What is used of CPython's stable ABI, found in the process: the library is linked with no Python, and
// lies in many processes that run none. All of it is called under the GIL.
#pragma once

#include <stddef.h>

namespace trainprof::collectors {

struct PyObject;

// PyMethodDef, of a function that takes its arguments as an array.
struct BuiltIn {
  const char* name;
  PyObject* (*call)(PyObject* self, PyObject* const* arguments, ptrdiff_t count);
  int flags;
  const char* documentation;
};
inline constexpr int kFastCall = 0x80;  // METH_FASTCALL

struct PythonApi {
  PyObject* (*new_function)(const BuiltIn*, PyObject* self, PyObject* module);
  PyObject* (*new_int)(long long);
  long long (*int_of)(PyObject*);
  PyObject* (*call)(PyObject*, ...);  // ends with a nullptr
  int (*is_true)(PyObject*);
  PyObject* (*item)(PyObject* dictionary, const char* key);  // borrowed
  int (*compare)(PyObject* text, const char* ascii);
  void (*keep)(PyObject*);
  void (*drop)(PyObject*);
  PyObject* (*error)();
  int (*error_is)(PyObject* kind);
  void (*clear_error)();
  PyObject** any_exception;  // class Exception: Ctrl-C is none
};

// nullptr where this process has no Python of ours.
const PythonApi* FindPython();

}  // namespace trainprof::collectors
