//===- CallArguments.cpp - The arguments of checked calls -----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CallArguments.h"
#include "PythonAPI.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nb = nanobind;
using namespace mlir::kvcache::python;
using namespace mlir::kvcache::runtime;

/// An index that is surely one: no bool, and not negative.
static Py_ssize_t readIndex(PyObject *object) {
  if (!PyLong_CheckExact(object))
    return -1;
  Py_ssize_t index = PyLong_AsSsize_t(object);
  if (index == -1)
    PyErr_Clear();
  return index;
}

bool CallArguments::readInputs(PyObject *inputs, PyObject *layer) {
  static PyObject *const name = PyUnicode_InternFromString("_operands");
  Py_ssize_t index = readIndex(layer);
  nb::object found = nb::steal(PyObject_GetAttr(inputs, name));
  if (index < 0 || !found.ptr() || !PyTuple_Check(found.ptr()) ||
      getTupleSize(found.ptr()) != 4) {
    PyErr_Clear();
    return false;
  }
  hostOffsets = getTupleItem(found.ptr(), 2);
  hostTotals = getTupleItem(found.ptr(), 3);
  PyObject *form = getTupleItem(found.ptr(), 0);
  const char *text = PyUnicode_AsUTF8AndSize(form, nullptr);
  if (!text) {
    PyErr_Clear();
    return false;
  }
  hasTable = operation.form == text;
  if (!hasTable && operation.formWithoutTable != text)
    return false;
  PyObject *all = getTupleItem(found.ptr(), 1);
  Py_ssize_t own = operation.layer < 0 ? index : 0;
  if (!PyTuple_Check(all) || own >= getTupleSize(all) ||
      !PyTuple_Check(getTupleItem(all, own)))
    return false;
  if (operation.layer >= 0 && !function.read(operation.layer, layer, arguments))
    return false;
  return readOperands(getTupleItem(all, own)) &&
         (operation.layer < 0 || index < getView(0).getSize(2));
}

bool CallArguments::readOperands(PyObject *operands) {
  auto count = static_cast<Py_ssize_t>(operation.operands.size());
  if (getTupleSize(operands) != count + 1)
    return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    int argument = static_cast<int>(i);
    if (!function.read(argument, getTupleItem(operands, i), arguments))
      return false;
    switch (operation.operands[i]) {
    case 'n':
      places.lengths = argument;
      break;
    case 't':
      places.table = argument;
      break;
    case 'x':
      places.tableIndex = argument;
      break;
    }
  }
  PyObject *offsets = getTupleItem(operands, count);
  const ArrayView &blocks = getView(0);
  int rank = blocks.getTensor().rank;
  if (rank != (operation.layer < 0 ? 4 : 6))
    return false;
  return function.read(operation.offsets, offsets, arguments);
}

bool CallArguments::readParameters(PyObject *const *values) {
  for (const Parameter &parameter : operation.parameters)
    if (!readParameter(parameter, *values++))
      return false;
  return placeScales();
}

/// The largest factor of scores, as kvcache.ops checks it.
constexpr float kMostFactor = 65536;

/// A number that is surely one: no bool, and of no type of NumPy.
static bool isNumber(PyObject *object) {
  return PyFloat_CheckExact(object) || PyLong_CheckExact(object);
}

/// Reads a number as f32, which is infinite for one out of range.
static float readFactor(PyObject *number) {
  constexpr double most = std::numeric_limits<float>::max();
  double factor = PyFloat_AsDouble(number);
  bool isOutside = PyErr_Occurred() || !(std::fabs(factor) <= most);
  PyErr_Clear();
  return isOutside ? std::numeric_limits<float>::infinity()
                   : static_cast<float>(factor);
}

bool CallArguments::readParameter(const Parameter &parameter, PyObject *value) {
  int argument = parameter.argument;
  if (argument < 0)
    return value == Py_None;
  switch (parameter.kind) {
  case ParameterKind::Number:
    return isNumber(value) && std::fabs(readFactor(value)) <= kMostFactor &&
           function.read(argument, value, arguments);
  case ParameterKind::Scale:
  case ParameterKind::OptionalScale:
    return readScale(parameter, value);
  case ParameterKind::OptionalRows:
    if (value != Py_None)
      break;
    getView(argument).fill(nullptr, parameter.size,
                           getView(0).getTensor().device);
    places.missingRows = argument;
    function.pass(argument, arguments);
    return true;
  case ParameterKind::Workspace:
    if (value != Py_None)
      break;
    places.newWorkspace = argument;
    return true;
  case ParameterKind::Rope:
    places.rope = argument;
    break;
  default:
    break;
  }
  return function.read(argument, value, arguments);
}

bool CallArguments::readScale(const Parameter &parameter, PyObject *value) {
  int argument = parameter.argument;
  bool isDefault =
      parameter.kind == ParameterKind::OptionalScale && value == Py_None;
  if (!isDefault && !isNumber(value))
    return function.read(argument, value, arguments);
  float scale = isDefault ? 1.0F : readFactor(value);
  // Python says whether 0 is a divisor.
  if (!std::isfinite(scale) || scale == 0 ||
      numScales + parameter.size > kMostScales)
    return false;
  if (function.isOnGPU()) {
    equalScales.push_back({argument, scale, parameter.size});
    return true;
  }
  float *values = scales + numScales;
  std::fill_n(values, parameter.size, scale);
  getView(argument).fill(values, parameter.size, getView(0).getTensor().device);
  function.pass(argument, arguments);
  numScales += parameter.size;
  return true;
}

nb::object CallArguments::getStream() const {
  DirectCall direct;
  if (!function.findStream(arguments, direct))
    return {};
  // Without a framework, TVM-FFI has the stream: Python asks it.
  return direct.hasStream ? nb::steal(PyLong_FromVoidPtr(direct.stream))
                          : nb::none();
}

bool CallArguments::placeScales() {
  if (equalScales.empty())
    return true;
  nb::object stream = getStream();
  int32_t device = getView(0).getTensor().device.id;
  return stream.ptr() &&
         std::all_of(equalScales.begin(), equalScales.end(),
                     [&](const EqualScale &each) {
                       return readMade(
                           each.argument,
                           PyObject_CallFunction(operation.placeScale, "fLiO",
                                                 each.scale, each.size, device,
                                                 stream.ptr()));
                     });
}

bool CallArguments::readMade(int argument, PyObject *array) {
  made.push_back(nb::steal(array));
  // Python's way raises the error of what has made none.
  PyErr_Clear();
  return array && function.read(argument, array, arguments);
}

bool CallArguments::findWorkspace(int64_t bytes) {
  if (places.newWorkspace < 0)
    return true;
  nb::object stream = getStream();
  if (!stream.ptr())
    return false;
  int32_t device = getView(0).getTensor().device.id;
  return readMade(places.newWorkspace,
                  PyObject_CallFunction(operation.findWorkspace, "LiO", bytes,
                                        device, stream.ptr()));
}
