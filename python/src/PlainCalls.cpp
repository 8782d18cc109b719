//===- PlainCalls.cpp - Calls that need no Python -------------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainCalls.h"
#include "NativeCalls.h"
#include "PythonAPI.h"

#include <cstddef>
#include <structmember.h>

namespace nb = nanobind;
using namespace mlir::kvcache::python;

/// Whether a tensor of PyTorch has a flag; not where it can't say.
static bool hasFlag(nb::object value) {
  PyErr_Clear();
  return !value.is(Py_False);
}

bool mlir::kvcache::python::isSpecialTensor(PyObject *tensor, char precision) {
  static PyObject *const requiresGrad =
      PyUnicode_InternFromString("requires_grad");
  static PyObject *const isNegated = PyUnicode_InternFromString("is_neg");
  return (precision > 0 &&
          hasFlag(nb::steal(PyObject_GetAttr(tensor, requiresGrad)))) ||
         (precision > 1 && hasFlag(nb::steal(callMethod(tensor, isNegated))));
}

/// Whether an argument must be looked at before TVM-FFI gets it.
static bool needsAdapting(PyObject *const *args, Py_ssize_t count,
                          PyObject *types, PyObject *precisions) {
  if (PyBytes_Size(precisions) != count)
    return true;
  const char *precision = PyBytes_AsString(precisions);
  PyTypeObject *known = nullptr;
  bool isTensor = false;
  for (Py_ssize_t index = 0; index < count; ++index) {
    if (PyTypeObject *type = Py_TYPE(args[index]); type != known) {
      PyObject *found =
          PyDict_GetItem(types, reinterpret_cast<PyObject *>(type));
      if (!found)
        return true;
      known = type;
      isTensor = found == Py_True;
    }
    if (isTensor && isSpecialTensor(args[index], precision[index]))
      return true;
  }
  return false;
}

/// Not through nanobind, which would take as long as all the rest.
static PyObject *pyNeedsAdapting(PyObject *, PyObject *const *operands,
                                 Py_ssize_t count) {
  if (count != 3 || !PyTuple_Check(operands[0]) || !PyDict_Check(operands[1]) ||
      !PyBytes_Check(operands[2])) {
    PyErr_SetString(PyExc_TypeError, "expects a tuple, a dict and bytes");
    return nullptr;
  }
  const TupleItems args(operands[0]);
  return PyBool_FromLong(
      needsAdapting(args.data(), args.size(), operands[1], operands[2]));
}

//===----------------------------------------------------------------------===//
// PlainMethod
//===----------------------------------------------------------------------===//

namespace {

/// A method `call(name, *args)`; see `plain_method` in _kvcache.pyi.
struct PlainMethod {
  PyObject_HEAD;
  vectorcallfunc call;
  PyObject *method, *types;
};

} // namespace

static PlainMethod *toMethod(PyObject *object) {
  return reinterpret_cast<PlainMethod *>(object);
}

/// Calls the function of a program as it is, or returns null: without an
/// exception if the method has to do it.
static PyObject *callPlain(const PlainMethod *self, PyObject *const *operands,
                           Py_ssize_t count) {
  static PyObject *const plain = PyUnicode_InternFromString("_plain");
  nb::object functions = nb::steal(PyObject_GetAttr(operands[0], plain));
  if (!functions.ptr() || !PyDict_Check(functions.ptr()) ||
      !PyUnicode_CheckExact(operands[1])) {
    PyErr_Clear();
    return nullptr;
  }
  nb::object entry = nb::borrow(PyDict_GetItem(functions.ptr(), operands[1]));
  if (!entry.ptr())
    return nullptr;
  PyObject *function = PyTuple_GetItem(entry.ptr(), 0);
  if (const NativeFunction *native = getNativeFunction(function)) {
    CallResult result = native->call(operands + 2, count - 2);
    if (result == CallResult::Done)
      return Py_NewRef(Py_None);
    if (result == CallResult::Failed || getTupleSize(entry.ptr()) < 4)
      return nullptr;
    function = getTupleItem(entry.ptr(), 3);
  }
  PyObject *precisions = PyTuple_GetItem(entry.ptr(), 1);
  if (needsAdapting(operands + 2, count - 2, self->types, precisions))
    return nullptr;
  PyObject *result =
      PyObject_Vectorcall(function, operands + 2, count - 2, nullptr);
  // Raised before the function runs.
  if (!result && (PyErr_ExceptionMatches(PyExc_TypeError) ||
                  PyErr_ExceptionMatches(PyExc_BufferError) ||
                  PyErr_ExceptionMatches(PyExc_OverflowError)))
    PyErr_Clear();
  if (!result || PyTuple_GetItem(entry.ptr(), 2) != Py_True)
    return result;
  nb::object several = nb::steal(result);
  return PySequence_Tuple(several.ptr());
}

static PyObject *callPlainMethod(PyObject *object, PyObject *const *operands,
                                 size_t flags, PyObject *names) {
  const PlainMethod *self = toMethod(object);
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  if (!names && count >= 2) {
    PyObject *result = callPlain(self, operands, count);
    if (result || PyErr_Occurred())
      return result;
  }
  return PyObject_Vectorcall(self->method, operands, flags, names);
}

static PyObject *bindMethod(PyObject *self, PyObject *object, PyObject *) {
  if (!object || object == Py_None)
    return Py_NewRef(self);
  return makeMethod(self, object);
}

/// Attributes of the object, else those of the method, such as its name.
static PyObject *getAttribute(PyObject *self, PyObject *name) {
  if (PyObject *found = PyObject_GenericGetAttr(self, name))
    return found;
  PyErr_Clear();
  return PyObject_GetAttr(toMethod(self)->method, name);
}

static PyObject *getDoc(PyObject *self, void *) {
  return PyObject_GetAttrString(toMethod(self)->method, "__doc__");
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(toMethod(self)->method);
  Py_VISIT(toMethod(self)->types);
  return 0;
}

static int clear(PyObject *self) {
  Py_CLEAR(toMethod(self)->method);
  Py_CLEAR(toMethod(self)->types);
  return 0;
}

static void destroy(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  freeObject(type, self);
  Py_DECREF(type);
}

static PyObject *makePlainMethodType() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(PlainMethod, call),
       READONLY, nullptr},
      {"__wrapped__", T_OBJECT_EX, offsetof(PlainMethod, method), READONLY,
       nullptr},
      {}};
  static PyGetSetDef attributes[] = {
      {"__doc__", getDoc, nullptr, nullptr, nullptr}, {}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void *>(&PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void *>(&bindMethod)},
      {Py_tp_getattro, reinterpret_cast<void *>(&getAttribute)},
      {Py_tp_members, members},
      {Py_tp_getset, attributes},
      {Py_tp_traverse, reinterpret_cast<void *>(&traverse)},
      {Py_tp_clear, reinterpret_cast<void *>(&clear)},
      {Py_tp_dealloc, reinterpret_cast<void *>(&destroy)},
      {}};
  static PyType_Spec spec = {
      "kvcache._kvcache.PlainMethod", sizeof(PlainMethod), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
          Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_DISALLOW_INSTANTIATION,
      slots};
  return PyType_FromSpec(&spec);
}

static PyObject *pyPlainMethod(PyObject *, PyObject *const *operands,
                               Py_ssize_t count) {
  static PyObject *const type = makePlainMethodType();
  if (!type)
    return nullptr;
  if (count != 2 || !PyCallable_Check(operands[0]) ||
      !PyDict_Check(operands[1])) {
    PyErr_SetString(PyExc_TypeError, "expects a method and a dict");
    return nullptr;
  }
  auto *self =
      PyObject_GC_New(PlainMethod, reinterpret_cast<PyTypeObject *>(type));
  if (!self)
    return nullptr;
  self->call = &callPlainMethod;
  self->method = Py_NewRef(operands[0]);
  self->types = Py_NewRef(operands[1]);
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject *>(self);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

template <typename Function> static PyCFunction toCFunction(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

void mlir::kvcache::python::addPlainCalls(nb::module_ &module) {
  static PyMethodDef functions[] = {
      {"needs_adapting", toCFunction(&pyNeedsAdapting), METH_FASTCALL, nullptr},
      {"plain_method", toCFunction(&pyPlainMethod), METH_FASTCALL, nullptr},
      {}};
  if (PyModule_AddFunctions(module.ptr(), functions))
    throw nb::python_error();
}
