//===- BoundCalls.cpp - Operations as objects of Python -------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckedCalls.h"
#include "Conversions.h"
#include "PythonAPI.h"

#include <algorithm>
#include <cstddef>
#include <structmember.h>

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace mlir::kvcache::python;

namespace {

/// `checked_call` in _kvcache.pyi.
struct CheckedObject {
  PyObject_HEAD;
  vectorcallfunc call;
  CheckedOperation *operation;
  /// The objects that the operation refers to.
  PyObject *function, *placeScale, *findWorkspace;
};

/// `bound_call` in _kvcache.pyi.
struct BoundObject {
  PyObject_HEAD;
  vectorcallfunc call;
  /// The checked call, the inputs and the layer; the values of parameters, a
  /// tuple; their names, likewise; the fallback and the handler of errors.
  PyObject *checked, *inputs, *layer, *values, *names, *fallback, *explain;
  /// The number of first parameters that calls may give by place.
  Py_ssize_t positional;
};

} // namespace

template <typename Object> static Object *to(PyObject *object) {
  return reinterpret_cast<Object *>(object);
}

//===----------------------------------------------------------------------===//
// Checked calls
//===----------------------------------------------------------------------===//

static PyObject *callChecked(PyObject *object, PyObject *const *values,
                             size_t flags, PyObject *names) {
  const CheckedOperation &operation = *to<CheckedObject>(object)->operation;
  auto count = static_cast<Py_ssize_t>(operation.parameters.size()) + 2;
  if (names || PyVectorcall_NARGS(flags) != count) {
    PyErr_Format(PyExc_TypeError, "expects %zd arguments", count);
    return nullptr;
  }
  CallResult result = operation.call(values[0], values[1], values + 2);
  if (result == CallResult::Failed)
    return nullptr;
  return PyBool_FromLong(result == CallResult::Done);
}

static void destroyChecked(PyObject *object) {
  auto *self = to<CheckedObject>(object);
  PyTypeObject *type = Py_TYPE(object);
  delete self->operation;
  Py_CLEAR(self->function);
  Py_CLEAR(self->placeScale);
  Py_CLEAR(self->findWorkspace);
  freeObject(type, object);
  Py_DECREF(type);
}

static PyTypeObject *getCheckedType() {
  static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET,
                                   offsetof(CheckedObject, call), READONLY,
                                   nullptr},
                                  {}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void *>(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_dealloc, reinterpret_cast<void *>(&destroyChecked)},
      {}};
  static PyType_Spec spec = {"kvcache._kvcache.CheckedCall",
                             sizeof(CheckedObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             slots};
  static auto *const type =
      reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return type;
}

/// A parameter: its name, argument, kind, and size.
using ParameterTuple = std::tuple<std::string, int, std::string, int64_t>;

static nb::object
makeCheckedCall(nb::handle function,
                const std::vector<ParameterTuple> &parameters,
                const std::string &operands, const std::string &form,
                const std::string &formWithoutTable, int layer, int offsets,
                bool needsPages, std::pair<int64_t, int64_t> workspaceBytes,
                nb::handle placeScale, nb::handle findWorkspace) {
  const NativeFunction *native = getNativeFunction(function.ptr());
  if (!native)
    throw nb::type_error("expects a native function");
  auto operation =
      std::make_unique<CheckedOperation>(CheckedOperation{native,
                                                          {},
                                                          {},
                                                          operands,
                                                          form,
                                                          formWithoutTable,
                                                          layer,
                                                          offsets,
                                                          needsPages,
                                                          workspaceBytes.first,
                                                          workspaceBytes.second,
                                                          placeScale.ptr(),
                                                          findWorkspace.ptr()});
  for (const auto &[name, argument, kind, size] : parameters) {
    operation->names.push_back(name);
    operation->parameters.push_back(
        {argument, static_cast<ParameterKind>(kind.at(0)), size});
  }
  auto *self = PyObject_New(CheckedObject, getCheckedType());
  if (!self)
    throw nb::python_error();
  self->call = &callChecked;
  self->operation = operation.release();
  self->function = function.inc_ref().ptr();
  self->placeScale = placeScale.inc_ref().ptr();
  self->findWorkspace = findWorkspace.inc_ref().ptr();
  return nb::steal(reinterpret_cast<PyObject *>(self));
}

//===----------------------------------------------------------------------===//
// Bound calls
//===----------------------------------------------------------------------===//

/// Puts the arguments of a call into `values`. False if one has no place.
static bool placeArguments(const BoundObject &self, PyObject *const *arguments,
                           Py_ssize_t count, PyObject *names,
                           PyObject **values) {
  const TupleItems defaults(self.values);
  Py_ssize_t most = defaults.size();
  std::copy_n(defaults.data(), most, values);
  if (count > self.positional)
    return false;
  std::copy_n(arguments, count, values);
  for (Py_ssize_t i = 0; names && i < getTupleSize(names); ++i) {
    PyObject *name = getTupleItem(names, i);
    // Names in source text are interned, as those of parameters are.
    Py_ssize_t place = count;
    while (place < most && getTupleItem(self.names, place) != name)
      ++place;
    if (place == most)
      return false;
    values[place] = arguments[count + i];
  }
  return true;
}

/// Lets the operation explain the error of a call.
static PyObject *explainError(const BoundObject &self) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject *arguments[] = {self.inputs, self.layer, value};
  PyObject *result = PyObject_Vectorcall(self.explain, arguments, 3, nullptr);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return result;
}

static PyObject *callBound(PyObject *object, PyObject *const *arguments,
                           size_t flags, PyObject *names) {
  const auto &self = *to<BoundObject>(object);
  PyObject *values[NativeArguments::kMost];
  Py_ssize_t count = PyVectorcall_NARGS(flags);
  CallResult result = CallResult::Refused;
  if (placeArguments(self, arguments, count, names, values))
    result = to<CheckedObject>(self.checked)
                 ->operation->call(self.inputs, self.layer, values);
  if (result == CallResult::Done)
    return Py_NewRef(Py_None);
  if (result == CallResult::Failed)
    return explainError(self);
  return PyObject_Vectorcall(self.fallback, arguments, count, names);
}

static int traverseBound(PyObject *object, visitproc visit, void *arg) {
  auto *self = to<BoundObject>(object);
  Py_VISIT(Py_TYPE(object));
  for (PyObject *each : {self->checked, self->inputs, self->layer, self->values,
                         self->names, self->fallback, self->explain})
    Py_VISIT(each);
  return 0;
}

static int clearBound(PyObject *object) {
  auto *self = to<BoundObject>(object);
  for (PyObject **each :
       {&self->checked, &self->inputs, &self->layer, &self->values,
        &self->names, &self->fallback, &self->explain})
    Py_CLEAR(*each);
  return 0;
}

static void destroyBound(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  clearBound(object);
  freeObject(type, object);
  Py_DECREF(type);
}

static PyTypeObject *getBoundType() {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(BoundObject, call),
       READONLY, nullptr},
      {"__wrapped__", T_OBJECT_EX, offsetof(BoundObject, fallback), READONLY,
       nullptr},
      {}};
  static PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void *>(&PyVectorcall_Call)},
      {Py_tp_members, members},
      {Py_tp_traverse, reinterpret_cast<void *>(&traverseBound)},
      {Py_tp_clear, reinterpret_cast<void *>(&clearBound)},
      {Py_tp_dealloc, reinterpret_cast<void *>(&destroyBound)},
      {}};
  static PyType_Spec spec = {
      "kvcache._kvcache.BoundCall", sizeof(BoundObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
          Py_TPFLAGS_DISALLOW_INSTANTIATION,
      slots};
  static auto *const type =
      reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return type;
}

static nb::object makeBoundCall(nb::handle checked, nb::handle inputs,
                                nb::handle layer, nb::dict given,
                                Py_ssize_t positional, nb::handle fallback,
                                nb::handle explain) {
  if (Py_TYPE(checked.ptr()) != getCheckedType())
    throw nb::type_error("expects a checked call");
  const auto &operation = *to<CheckedObject>(checked.ptr())->operation;
  auto count = static_cast<Py_ssize_t>(operation.names.size());
  nb::object values = nb::steal(PyTuple_New(count));
  nb::object names = nb::steal(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject *name = PyUnicode_InternFromString(operation.names[i].c_str());
    PyObject *value = PyDict_GetItem(given.ptr(), name);
    setTupleItem(names.ptr(), i, name);
    setTupleItem(values.ptr(), i, Py_NewRef(value ? value : Py_None));
  }
  auto *self = PyObject_GC_New(BoundObject, getBoundType());
  if (!self)
    throw nb::python_error();
  self->call = &callBound;
  self->positional = std::min(positional, count);
  self->checked = checked.inc_ref().ptr();
  self->inputs = inputs.inc_ref().ptr();
  self->layer = layer.inc_ref().ptr();
  self->values = values.release().ptr();
  self->names = names.release().ptr();
  self->fallback = fallback.inc_ref().ptr();
  self->explain = explain.inc_ref().ptr();
  PyObject_GC_Track(reinterpret_cast<PyObject *>(self));
  return nb::steal(reinterpret_cast<PyObject *>(self));
}

void mlir::kvcache::python::addCheckedCalls(nb::module_ &module) {
  module.def("checked_call", &makeCheckedCall, nb::arg("function"),
             nb::arg("parameters"), nb::arg("operands"), nb::arg("form"),
             nb::arg("form_without_table"), nb::arg("layer"),
             nb::arg("offsets"), nb::arg("needs_pages"),
             nb::arg("workspace_bytes"), nb::arg("place_scale"),
             nb::arg("find_workspace").none());
  module.def("bound_call", &makeBoundCall, nb::arg("checked"),
             nb::arg("inputs").none(), nb::arg("layer").none(),
             nb::arg("given"), nb::arg("positional"), nb::arg("fallback"),
             nb::arg("explain"));
}
