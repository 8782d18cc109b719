//===- PythonAPI.h - Python's C API in two forms ----------------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that the stable ABI of Python 3.12 lacks, or has in a slower form.
// An extension for one version of Python has macros in their place.
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_PYTHONAPI_H
#define KVCACHE_PYTHON_PYTHONAPI_H

#include "llvm/ADT/SmallVector.h"
#include <nanobind/nanobind.h>

#ifdef Py_LIMITED_API
/// Each CPython exports it, although the stable ABI does not list it.
extern "C" int PyGILState_Check(void);
#endif

namespace mlir::kvcache::python {

/// The size of a tuple, which the caller has checked.
inline Py_ssize_t getTupleSize(PyObject *tuple) {
#ifdef Py_LIMITED_API
  return PyTuple_Size(tuple);
#else
  return PyTuple_GET_SIZE(tuple);
#endif
}

/// A borrowed item of a tuple; tuple and index are checked by the caller.
inline PyObject *getTupleItem(PyObject *tuple, Py_ssize_t index) {
#ifdef Py_LIMITED_API
  return PyTuple_GetItem(tuple, index);
#else
  return PyTuple_GET_ITEM(tuple, index);
#endif
}

/// Sets an item of a new tuple, which then owns it.
inline void setTupleItem(PyObject *tuple, Py_ssize_t index, PyObject *item) {
#ifdef Py_LIMITED_API
  PyTuple_SetItem(tuple, index, item);
#else
  PyTuple_SET_ITEM(tuple, index, item);
#endif
}

/// Borrowed items of a tuple, one after another in memory.
class TupleItems {
public:
  explicit TupleItems(PyObject *tuple) : count(getTupleSize(tuple)) {
#ifdef Py_LIMITED_API
    for (Py_ssize_t i = 0; i < count; ++i)
      copies.push_back(PyTuple_GetItem(tuple, i));
    items = copies.data();
#else
    items = &PyTuple_GET_ITEM(tuple, 0);
#endif
  }
  TupleItems(const TupleItems &) = delete;
  TupleItems &operator=(const TupleItems &) = delete;

  PyObject *const *data() const { return items; }
  Py_ssize_t size() const { return count; }

private:
  Py_ssize_t count;
  PyObject *const *items;
#ifdef Py_LIMITED_API
  llvm::SmallVector<PyObject *, 32> copies;
#endif
};

/// Frees the memory of an object; the caller releases the type.
inline void freeObject(PyTypeObject *type, PyObject *object) {
#ifdef Py_LIMITED_API
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(object);
#else
  type->tp_free(object);
#endif
}

/// Calls a method without arguments. The result is new, or null with an error.
inline PyObject *callMethod(PyObject *object, PyObject *name) {
  return PyObject_VectorcallMethod(name, &object,
                                   1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
}

/// Makes a method of a callable and its first argument.
inline PyObject *makeMethod(PyObject *function, PyObject *self) {
#ifdef Py_LIMITED_API
  nanobind::object types = nanobind::steal(PyImport_ImportModule("types"));
  if (!types.ptr())
    return nullptr;
  return PyObject_CallMethod(types.ptr(), "MethodType", "OO", function, self);
#else
  return PyMethod_New(function, self);
#endif
}

/// The value of a float, which the caller has checked.
inline double getFloatValue(PyObject *number) {
#ifdef Py_LIMITED_API
  return PyFloat_AsDouble(number);
#else
  return PyFloat_AS_DOUBLE(number);
#endif
}

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_PYTHONAPI_H
