#include "collectors/python/python_api.h"

#include <dlfcn.h>

#include "collectors/core/old_glibc.h"

namespace trainprof::collectors {
namespace {

template <class Pointer>
bool Find(const char* name, Pointer* out) {
  *out = reinterpret_cast<Pointer>(dlsym(RTLD_DEFAULT, name));
  return *out != nullptr;
}

bool FindAll(PythonApi* api) {
  return Find("PyCFunction_NewEx", &api->new_function) &&
         Find("PyLong_FromLongLong", &api->new_int) && Find("PyLong_AsLongLong", &api->int_of) &&
         Find("PyObject_CallFunctionObjArgs", &api->call) &&
         Find("PyInstanceMethod_New", &api->new_method) && Find("PyObject_Call", &api->call_with) &&
         Find("PyTuple_GetSlice", &api->slice) && Find("PyTuple_Size", &api->size) &&
         Find("PyErr_Fetch", &api->fetch_error) && Find("PyErr_Restore", &api->restore_error) &&
         Find("PyObject_IsTrue", &api->is_true) && Find("PyDict_GetItemString", &api->item) &&
         Find("PyUnicode_CompareWithASCIIString", &api->compare) && Find("Py_IncRef", &api->keep) &&
         Find("Py_DecRef", &api->drop) && Find("PyErr_Occurred", &api->error) &&
         Find("PyErr_ExceptionMatches", &api->error_is) && Find("PyErr_Clear", &api->clear_error) &&
         Find("PyExc_Exception", &api->any_exception) && Find("Py_CompileString", &api->compile) &&
         Find("PyEval_EvalCode", &api->evaluate) && Find("PyDict_New", &api->new_dictionary) &&
         Find("PyDict_SetItemString", &api->set_item) && Find("PyEval_GetBuiltins", &api->builtins);
}

}  // namespace

void PythonApi::run_apart(const char* text) const {
  constexpr int kFileInput = 257;  // Py_file_input
  PyObject* const names = new_dictionary();
  PyObject* const code = compile(text, "<trainprof>", kFileInput);
  if (names != nullptr && code != nullptr && set_item(names, "__builtins__", builtins()) == 0) {
    if (PyObject* const result = evaluate(code, names, names)) drop(result);
  }
  clear_error();
  if (code != nullptr) drop(code);
  if (names != nullptr) drop(names);
}

const PythonApi* FindPython() {
  static PythonApi api;
  static const bool is_found = FindAll(&api);
  return is_found ? &api : nullptr;
}

}  // namespace trainprof::collectors
