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
  int flags = 0x80;  // METH_FASTCALL
  const char* documentation = nullptr;
};

// The same, as a tuple and a dictionary, or nullptr.
struct BuiltInWithKeywords {
  const char* name;
  PyObject* (*call)(PyObject* self, PyObject* arguments, PyObject* keywords);
  int flags = 0x03;  // METH_VARARGS | METH_KEYWORDS
  const char* documentation = nullptr;
};

struct PythonApi {
  PyObject* (*new_function)(const void* definition, PyObject* self, PyObject* module);
  PyObject* (*new_method)(PyObject* function);  // which a class hands its object to
  PyObject* (*new_int)(long long);
  long long (*int_of)(PyObject*);
  PyObject* (*call)(PyObject*, ...);  // ends with a nullptr
  PyObject* (*call_with)(PyObject*, PyObject* arguments, PyObject* keywords);
  PyObject* (*slice)(PyObject* tuple, ptrdiff_t from, ptrdiff_t to);
  ptrdiff_t (*size)(PyObject* tuple);
  int (*is_true)(PyObject*);
  PyObject* (*item)(PyObject* dictionary, const char* key);  // borrowed
  int (*compare)(PyObject* text, const char* ascii);
  void (*keep)(PyObject*);
  void (*drop)(PyObject*);
  PyObject* (*error)();
  int (*error_is)(PyObject* kind);
  void (*clear_error)();
  void (*fetch_error)(PyObject** kind, PyObject** value, PyObject** trace);
  void (*restore_error)(PyObject* kind, PyObject* value, PyObject* trace);
  PyObject** any_exception;  // class Exception: Ctrl-C is none

  // Runs a program among names of its own. What it raises is lost.
  void run_apart(const char* text) const;

  PyObject* (*compile)(const char* text, const char* file, int start);
  PyObject* (*evaluate)(PyObject* code, PyObject* globals, PyObject* locals);
  PyObject* (*new_dictionary)();
  int (*set_item)(PyObject* dictionary, const char* key, PyObject* value);
  PyObject* (*builtins)();  // borrowed
};

// nullptr where this process has no Python of ours.
const PythonApi* FindPython();

}  // namespace trainprof::collectors
