//===- NativeCalls.cpp - Calls without TVM-FFI's objects ------------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "NativeCalls.h"
#include "Conversions.h"
#include "PythonAPI.h"
#include "ReleasedGIL.h"

#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlir::kvcache::python;
using namespace mlir::kvcache::runtime;

/// The package's CheckError.
static PyObject *checkError = nullptr;

NativeFunction::NativeFunction(const JIT &jit, const std::string &name,
                               std::string kinds, std::string precisions,
                               std::string written, bool isOnGPU)
    : function(reinterpret_cast<decltype(function)>(jit.lookup(name))),
      kinds(std::move(kinds)), precisions(std::move(precisions)),
      written(std::move(written)), onGPU(isOnGPU) {
  if (!function || this->kinds.size() > NativeArguments::kMost ||
      this->precisions.size() != this->kinds.size() ||
      this->written.size() != this->kinds.size())
    throw nb::value_error("no such function");
}

static bool readInteger(PyObject *value, ffi::Any &result) {
  if (PyBool_Check(value)) {
    result = {ffi::kBool, 0, {value == Py_True}};
    return true;
  }
  if (!PyLong_CheckExact(value))
    return false;
  int overflow = 0;
  long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  result = {ffi::kInt, 0, {number}};
  return overflow == 0;
}

static bool readFloat(PyObject *value, ffi::Any &result) {
  if (!PyFloat_CheckExact(value))
    return readInteger(value, result);
  result = {ffi::kFloat, 0, {0}};
  result.real = getFloatValue(value);
  return true;
}

bool NativeFunction::read(int index, PyObject *value,
                          NativeArguments &arguments) const {
  if (kinds[index] == 'i')
    return readInteger(value, arguments.values[index]);
  if (kinds[index] == 'f')
    return readFloat(value, arguments.values[index]);
  if (!arguments.views[index].read(value, precisions[index], isWritten(index),
                                   onGPU))
    return false;
  pass(index, arguments);
  return true;
}

void NativeFunction::pass(int index, NativeArguments &arguments) const {
  ffi::Any &value = arguments.values[index];
  value = {ffi::kDLTensor, 0, {0}};
  value.pointer = &arguments.views[index].getTensor();
}

bool NativeFunction::findStream(const NativeArguments &arguments,
                                DirectCall &direct) const {
  for (int index = 0; index < getCount() && onGPU; ++index) {
    const ArrayView &view = arguments.views[index];
    if (!isArray(index) || !view.hasStream())
      continue;
    direct.hasStream = true;
    return view.getStream(direct.stream);
  }
  return true;
}

CallResult NativeFunction::call(NativeArguments &arguments) const {
  DirectCall direct;
  if (!findStream(arguments, direct))
    return CallResult::Refused;
  ffi::Any result;
  int32_t status;
  {
    ReleasedGIL released;
    expectCall(direct);
    status = function(nullptr, arguments.values, getCount(), &result);
  }
  if (status == 0)
    return CallResult::Done;
  // All other errors are of arguments, before the function runs.
  if (direct.errorKind != "kvcache.CheckError")
    return CallResult::Refused;
  PyErr_SetObject(checkError, toStr(direct.message).ptr());
  return CallResult::Failed;
}

CallResult NativeFunction::call(PyObject *const *values,
                                Py_ssize_t count) const {
  if (count != getCount())
    return CallResult::Refused;
  NativeArguments arguments;
  for (int index = 0; index < getCount(); ++index)
    if (!read(index, values[index], arguments))
      return CallResult::Refused;
  return call(arguments);
}

const NativeFunction *
mlir::kvcache::python::getNativeFunction(PyObject *object) {
  static const nb::handle type = nb::type<NativeFunction>();
  if (reinterpret_cast<PyObject *>(Py_TYPE(object)) != type.ptr())
    return nullptr;
  return nb::inst_ptr<NativeFunction>(object);
}

void mlir::kvcache::python::addNativeCalls(nb::module_ &module) {
  nb::class_<NativeFunction>(module, "NativeFunction");
  module.def(
      "native_function",
      [](const JIT &jit, const std::string &name, nb::bytes kinds,
         nb::bytes precisions, nb::bytes written, bool isOnGPU) {
        return NativeFunction(jit, name, toString(kinds), toString(precisions),
                              toString(written), isOnGPU);
      },
      nb::arg("jit"), nb::arg("name"), nb::arg("kinds"), nb::arg("precisions"),
      nb::arg("written"), nb::arg("is_on_gpu"), nb::keep_alive<0, 1>());
  module.def(
      "register_native",
      [](nb::handle array, nb::dict dtypes, nb::handle error) {
        registerNumPy(array, dtypes);
        checkError = error.inc_ref().ptr();
      },
      nb::arg("array"), nb::arg("dtypes"), nb::arg("error"));
}
