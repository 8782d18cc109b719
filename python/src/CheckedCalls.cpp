//===- CheckedCalls.cpp - Calls of operations with their checks -----------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CheckedCalls.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace nb = nanobind;
using namespace mlir::kvcache::python;
using namespace mlir::kvcache::runtime;

namespace {

/// One call: its arguments, and what of them the checks need.
class CheckedCall {
public:
  explicit CheckedCall(const CheckedOperation &operation)
      : operation(operation), function(*operation.function) {}

  CallResult run(PyObject *inputs, PyObject *layer, PyObject *const *values) {
    bool isRight = readInputs(inputs, layer) && readParameters(values) &&
                   checkSteps() && checkParameters() && areApart();
    return isRight ? function.call(arguments) : CallResult::Refused;
  }

private:
  bool readInputs(PyObject *inputs, PyObject *layer);
  bool readOperands(PyObject *operands);
  bool readParameters(PyObject *const *values);
  bool readParameter(const Parameter &parameter, PyObject *value);
  bool fillScale(const Parameter &parameter, PyObject *value);

  bool checkSteps();
  bool checkIndex() const;
  bool checkPages();
  bool checkParameters();
  bool checkParameter(const Parameter &parameter);
  bool checkRows(const ArrayView &view, int dimension);
  bool checkLengths(const ArrayView &view);
  bool areApart() const;

  /// The tokens that the pages of a sequence hold.
  uint64_t getRoom(int64_t sequence) const;
  uint64_t getNew(int64_t sequence) const {
    const uint32_t *starts = getView(operation.offsets).getInts();
    return starts[sequence + 1] - starts[sequence];
  }

  ArrayView &getView(int argument) { return arguments.views[argument]; }
  const ArrayView &getView(int argument) const {
    return arguments.views[argument];
  }

  const CheckedOperation &operation;
  const NativeFunction &function;
  NativeArguments arguments;
  /// Arguments of arrays; negative for none.
  int lengths = -1, table = -1, tableIndex = -1, rope = -1;
  /// The optional rows that are not given.
  int missing = -1;
  bool hasTable = false;
  int64_t batch = 0;
  /// New tokens; negative until the first rows say it.
  int64_t total = -1;
  /// The most tokens of a sequence.
  uint64_t longest = 0;
  int64_t numPages = 0, pageSize = 0;
  /// The elements of scales that are given as numbers.
  static constexpr int64_t kMostScales = 512;
  float scales[kMostScales];
  int64_t numScales = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// An index that is surely one: no bool, and not negative.
static Py_ssize_t readIndex(PyObject *object) {
  if (!PyLong_CheckExact(object))
    return -1;
  Py_ssize_t index = PyLong_AsSsize_t(object);
  if (index == -1)
    PyErr_Clear();
  return index;
}

bool CheckedCall::readInputs(PyObject *inputs, PyObject *layer) {
  static PyObject *const name = PyUnicode_InternFromString("_operands");
  Py_ssize_t index = readIndex(layer);
  nb::object found = nb::steal(PyObject_GetAttr(inputs, name));
  if (index < 0 || !found.ptr() || !PyTuple_Check(found.ptr()) ||
      PyTuple_GET_SIZE(found.ptr()) != 2) {
    PyErr_Clear();
    return false;
  }
  PyObject *form = PyTuple_GET_ITEM(found.ptr(), 0);
  const char *text = PyUnicode_AsUTF8(form);
  if (!text) {
    PyErr_Clear();
    return false;
  }
  hasTable = operation.form == text;
  if (!hasTable && operation.formWithoutTable != text)
    return false;
  PyObject *all = PyTuple_GET_ITEM(found.ptr(), 1);
  Py_ssize_t own = operation.layer < 0 ? index : 0;
  if (!PyTuple_Check(all) || own >= PyTuple_GET_SIZE(all) ||
      !PyTuple_Check(PyTuple_GET_ITEM(all, own)))
    return false;
  if (operation.layer >= 0 && !function.read(operation.layer, layer, arguments))
    return false;
  return readOperands(PyTuple_GET_ITEM(all, own)) &&
         (operation.layer < 0 || index < getView(0).getSize(2));
}

bool CheckedCall::readOperands(PyObject *operands) {
  auto count = static_cast<Py_ssize_t>(operation.operands.size());
  if (PyTuple_GET_SIZE(operands) != count + 1)
    return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    int argument = static_cast<int>(i);
    if (!function.read(argument, PyTuple_GET_ITEM(operands, i), arguments))
      return false;
    switch (operation.operands[i]) {
    case 'n':
      lengths = argument;
      break;
    case 't':
      table = argument;
      break;
    case 'x':
      tableIndex = argument;
      break;
    }
  }
  PyObject *offsets = PyTuple_GET_ITEM(operands, count);
  const ArrayView &blocks = getView(0);
  int rank = blocks.getTensor().rank;
  if (rank != (operation.layer < 0 ? 4 : 6))
    return false;
  numPages = blocks.getSize(0);
  pageSize = blocks.getSize(rank - 3);
  return function.read(operation.offsets, offsets, arguments);
}

bool CheckedCall::readParameters(PyObject *const *values) {
  for (const Parameter &parameter : operation.parameters)
    if (!readParameter(parameter, *values++))
      return false;
  return true;
}

bool CheckedCall::readParameter(const Parameter &parameter, PyObject *value) {
  int argument = parameter.argument;
  if (argument < 0)
    return value == Py_None;
  bool isNumber = PyFloat_CheckExact(value) || PyLong_CheckExact(value);
  switch (parameter.kind) {
  case ParameterKind::Number:
    return isNumber && std::isfinite(PyFloat_AsDouble(value)) &&
           function.read(argument, value, arguments);
  case ParameterKind::Scale:
    if (isNumber)
      return fillScale(parameter, value);
    break;
  case ParameterKind::OptionalRows:
    if (value != Py_None)
      break;
    getView(argument).fill(nullptr, parameter.size);
    missing = argument;
    function.pass(argument, arguments);
    return true;
  case ParameterKind::Rope:
    rope = argument;
    break;
  default:
    break;
  }
  return function.read(argument, value, arguments);
}

bool CheckedCall::fillScale(const Parameter &parameter, PyObject *value) {
  double scale = PyFloat_AsDouble(value);
  if (!std::isfinite(scale) || numScales + parameter.size > kMostScales) {
    PyErr_Clear();
    return false;
  }
  std::fill_n(scales + numScales, parameter.size, static_cast<float>(scale));
  getView(parameter.argument).fill(scales + numScales, parameter.size);
  function.pass(parameter.argument, arguments);
  numScales += parameter.size;
  return true;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Sizes of the step agree, and sequences have pages for their tokens.
bool CheckedCall::checkSteps() {
  if (!hasTable)
    return true;
  const ArrayView &starts = getView(operation.offsets);
  if (!starts.isVectorOfInts() || starts.getSize(0) < 1 ||
      !getView(lengths).isVectorOfInts())
    return false;
  batch = starts.getSize(0) - 1;
  if (getView(lengths).getSize(0) != batch)
    return false;
  if (tableIndex >= 0 && !getView(tableIndex).isVectorOfInts())
    return false;
  const ArrayView &entries = getView(table);
  int rank = entries.getTensor().rank;
  if (rank != 1 && rank != 2)
    return false;
  bool isCSR = rank == 1;
  int64_t numRows = tableIndex < 0 ? entries.getSize(0)
                                   : getView(tableIndex).getSize(0) - isCSR;
  if (numRows != batch)
    return false;
  total = starts.getInts()[batch];
  return starts.getInts()[0] == 0 && checkIndex() && checkPages();
}

/// Sequences have entries or a row of the table.
bool CheckedCall::checkIndex() const {
  if (tableIndex < 0)
    return true;
  const ArrayView &entries = getView(table);
  const uint32_t *index = getView(tableIndex).getInts();
  if (entries.getTensor().rank == 1)
    return std::is_sorted(index, index + batch + 1) &&
           index[batch] <= entries.getSize(0);
  return std::all_of(index, index + batch,
                     [&](uint32_t row) { return row < entries.getSize(0); });
}

bool CheckedCall::checkPages() {
  const uint32_t *counts = getView(lengths).getInts();
  const uint32_t *starts = getView(operation.offsets).getInts();
  for (int64_t b = 0; b < batch; ++b) {
    uint64_t tokens = uint64_t(counts[b]) + getNew(b);
    if (starts[b + 1] < starts[b])
      return false;
    longest = std::max(longest, tokens);
    if (operation.needsPages && tokens > getRoom(b))
      return false;
  }
  return true;
}

uint64_t CheckedCall::getRoom(int64_t sequence) const {
  const ArrayView &entries = getView(table);
  if (entries.getTensor().rank != 1)
    return entries.getSize(1) * pageSize;
  const uint32_t *starts = getView(tableIndex).getInts();
  return uint64_t(starts[sequence + 1] - starts[sequence]) * pageSize;
}

bool CheckedCall::checkParameters() {
  bool hasPositions = false;
  for (const Parameter &parameter : operation.parameters) {
    if (parameter.argument < 0)
      continue;
    hasPositions |= parameter.kind == ParameterKind::Positions;
    if (function.isArray(parameter.argument) && !checkParameter(parameter))
      return false;
  }
  if (rope >= 0 && getView(rope).getTensor().rank != 2)
    return false;
  return rope < 0 || hasPositions ||
         longest <= static_cast<uint64_t>(getView(rope).getSize(0));
}

/// Arrays have a row for each new token.
bool CheckedCall::checkRows(const ArrayView &view, int dimension) {
  if (view.getTensor().rank <= dimension)
    return false;
  int64_t rows = view.getSize(dimension);
  if (total < 0)
    total = rows;
  return rows >= total;
}

/// Whether the integers of the first `rows` rows, or columns of the last
/// dimension, are in [least, end). As kernels read them, integers are signed.
static bool areBetween(const ArrayView &view, int64_t rows, bool areColumns,
                       int64_t least, int64_t end) {
  const ffi::DLTensor &tensor = view.getTensor();
  if (tensor.dtype.code > 1 || tensor.dtype.lanes != 1 || tensor.rank < 1 ||
      tensor.rank > 2 || (tensor.dtype.bits != 32 && tensor.dtype.bits != 64))
    return false;
  bool isWide = tensor.dtype.bits == 64, isMatrix = tensor.rank == 2;
  int inner = isMatrix ? 1 : 0;
  int64_t outerSize = isMatrix ? view.getSize(0) : 1;
  int64_t innerSize = view.getSize(inner);
  int64_t outerStride = isMatrix ? view.getStride(0) : 0;
  int64_t innerStride = view.getStride(inner);
  if (areColumns || !isMatrix)
    innerSize = std::min(innerSize, rows);
  else
    outerSize = std::min(outerSize, rows);
  auto *numbers = reinterpret_cast<const char *>(view.getAddress());
  for (int64_t i = 0; i < outerSize; ++i)
    for (int64_t j = 0; j < innerSize; ++j) {
      int64_t place = i * outerStride + j * innerStride;
      int64_t number = isWide
                           ? reinterpret_cast<const int64_t *>(numbers)[place]
                           : reinterpret_cast<const int32_t *>(numbers)[place];
      if (number < least || number >= end)
        return false;
    }
  return true;
}

bool CheckedCall::checkParameter(const Parameter &parameter) {
  const ArrayView &view = getView(parameter.argument);
  constexpr int64_t any = std::numeric_limits<int64_t>::min();
  switch (parameter.kind) {
  case ParameterKind::OptionalRows:
    return parameter.argument == missing || checkRows(view, 0);
  case ParameterKind::Rows:
    return checkRows(view, 0);
  case ParameterKind::Slots:
  case ParameterKind::SeenSlots:
    return checkRows(view, 0) &&
           areBetween(view, total, false, any, numPages * pageSize);
  case ParameterKind::Positions:
    return view.getTensor().rank > 0 &&
           checkRows(view, view.getTensor().rank - 1) && rope >= 0 &&
           getView(rope).getTensor().rank == 2 &&
           areBetween(view, total, true, 0, getView(rope).getSize(0));
  case ParameterKind::Lengths:
    return checkLengths(view);
  default:
    return true;
  }
}

bool CheckedCall::checkLengths(const ArrayView &view) {
  if (!view.isVectorOfInts() || view.getSize(0) != batch)
    return false;
  for (int64_t b = 0; b < batch; ++b) {
    uint64_t length = view.getInts()[b];
    uint64_t least = operation.hasPositions ? getNew(b) : 0;
    if (length < least || length > getRoom(b) ||
        length > std::numeric_limits<int32_t>::max())
      return false;
  }
  return true;
}

/// No array that is written shares memory with another one, except for tensors
/// of the cache among themselves.
bool CheckedCall::areApart() const {
  auto isOfCache = [&](int argument) {
    return argument < static_cast<int>(operation.operands.size()) &&
           operation.operands[argument] == 'c';
  };
  for (int written = 0; written < function.getCount(); ++written) {
    if (!function.isArray(written) || !function.isWritten(written))
      continue;
    for (int other = 0; other < function.getCount(); ++other) {
      if (other == written || !function.isArray(other) ||
          (isOfCache(written) && isOfCache(other)))
        continue;
      if (getView(written).mayOverlap(getView(other)))
        return false;
    }
  }
  return true;
}

CallResult CheckedOperation::call(PyObject *inputs, PyObject *layer,
                                  PyObject *const *values) const {
  return CheckedCall(*this).run(inputs, layer, values);
}
