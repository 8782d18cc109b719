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
                   checkSteps() && checkParameters() && findWorkspace() &&
                   areApart();
    return isRight ? function.call(arguments) : CallResult::Refused;
  }

private:
  bool readInputs(PyObject *inputs, PyObject *layer);
  bool readOperands(PyObject *operands);
  bool readParameters(PyObject *const *values);
  bool readParameter(const Parameter &parameter, PyObject *value);
  bool readScale(const Parameter &parameter, PyObject *value);
  /// Reads an array that Python has made; null for an error.
  bool readMade(int argument, PyObject *array);
  bool findWorkspace();
  int64_t countWorkspaceBytes() const;

  bool checkSteps();
  bool checkHostSteps();
  bool checkOffsets(const ArrayView &starts);
  bool checkTotals(const ArrayView &totals);
  bool checkIndex() const;
  bool checkPages();
  bool checkParameters();
  bool checkParameter(const Parameter &parameter);
  bool checkRows(const ArrayView &view, int dimension);
  bool areOutside(const ArrayView &view, bool areColumns, int64_t least,
                  int64_t end) const;
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
  /// The arrays that Python gives for numbers and for no workspace.
  std::vector<nb::object> made;
  /// The argument of a workspace that is not given; negative for none.
  int workspace = -1;
  /// The copies of offsets and totals in host memory, or None. The inputs own
  /// them.
  PyObject *hostOffsets = Py_None, *hostTotals = Py_None;
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
      PyTuple_GET_SIZE(found.ptr()) != 4) {
    PyErr_Clear();
    return false;
  }
  hostOffsets = PyTuple_GET_ITEM(found.ptr(), 2);
  hostTotals = PyTuple_GET_ITEM(found.ptr(), 3);
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

bool CheckedCall::readParameter(const Parameter &parameter, PyObject *value) {
  int argument = parameter.argument;
  if (argument < 0)
    return value == Py_None;
  switch (parameter.kind) {
  case ParameterKind::Number:
    return isNumber(value) && std::isfinite(readFactor(value)) &&
           function.read(argument, value, arguments);
  case ParameterKind::Scale:
  case ParameterKind::OptionalScale:
    return readScale(parameter, value);
  case ParameterKind::OptionalRows:
    if (value != Py_None)
      break;
    getView(argument).fill(nullptr, parameter.size,
                           getView(0).getTensor().device);
    missing = argument;
    function.pass(argument, arguments);
    return true;
  case ParameterKind::Workspace:
    if (value != Py_None)
      break;
    workspace = argument;
    return true;
  case ParameterKind::Rope:
    rope = argument;
    break;
  default:
    break;
  }
  return function.read(argument, value, arguments);
}

bool CheckedCall::readScale(const Parameter &parameter, PyObject *value) {
  int argument = parameter.argument;
  bool isDefault =
      parameter.kind == ParameterKind::OptionalScale && value == Py_None;
  if (!isDefault && !isNumber(value))
    return function.read(argument, value, arguments);
  float scale = isDefault ? 1.0F : readFactor(value);
  if (!std::isfinite(scale) || numScales + parameter.size > kMostScales)
    return false;
  if (function.isOnGPU()) {
    int32_t device = getView(0).getTensor().device.id;
    return readMade(argument,
                    PyObject_CallFunction(operation.placeScale, "fLi", scale,
                                          parameter.size, device));
  }
  std::fill_n(scales + numScales, parameter.size, scale);
  getView(argument).fill(scales + numScales, parameter.size,
                         getView(0).getTensor().device);
  function.pass(argument, arguments);
  numScales += parameter.size;
  return true;
}

bool CheckedCall::readMade(int argument, PyObject *array) {
  made.push_back(nb::steal(array));
  // Python's way raises the error of what has made none.
  PyErr_Clear();
  return array && function.read(argument, array, arguments);
}

int64_t CheckedCall::countWorkspaceBytes() const {
  return operation.fixedWorkspaceBytes + batch * operation.workspaceBytes;
}

/// Finds the workspace of the stream, where none is given.
bool CheckedCall::findWorkspace() {
  if (workspace < 0)
    return true;
  DirectCall direct;
  if (!function.findStream(arguments, direct))
    return false;
  // Without a framework, TVM-FFI has the stream: Python asks it.
  nb::object stream = direct.hasStream
                          ? nb::steal(PyLong_FromVoidPtr(direct.stream))
                          : nb::none();
  int32_t device = getView(0).getTensor().device.id;
  return readMade(workspace, PyObject_CallFunction(operation.findWorkspace,
                                                   "LiO", countWorkspaceBytes(),
                                                   device, stream.ptr()));
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
  if (function.isOnGPU())
    return checkHostSteps();
  return checkOffsets(starts) && checkIndex() && checkPages();
}

/// Reads offsets, which begin with 0 and do not decrease.
bool CheckedCall::checkOffsets(const ArrayView &starts) {
  const uint32_t *first = starts.getInts();
  total = first[batch];
  return *first == 0 && std::is_sorted(first, first + batch + 1);
}

/// Checks what a step whose arrays are on a GPU has in host memory.
bool CheckedCall::checkHostSteps() {
  ArrayView starts, totals;
  auto read = [](ArrayView &view, PyObject *array) {
    return view.read(array, /*precision=*/0, /*isWritten=*/false,
                     /*isOnGPU=*/false);
  };
  if (hostOffsets != Py_None &&
      (!read(starts, hostOffsets) || !starts.isVectorOfInts() ||
       starts.getSize(0) != batch + 1 || !checkOffsets(starts)))
    return false;
  return hostTotals == Py_None ||
         (read(totals, hostTotals) && totals.isVectorOfInts(/*bits=*/64) &&
          totals.getSize(0) == batch && checkTotals(totals));
}

/// Sequences have pages for their tokens, where their number is known.
bool CheckedCall::checkTotals(const ArrayView &totals) {
  const ArrayView &entries = getView(table);
  bool isCSR = entries.getTensor().rank == 1;
  auto *counts = reinterpret_cast<const uint64_t *>(totals.getAddress());
  for (int64_t b = 0; b < batch; ++b) {
    longest = std::max(longest, counts[b]);
    if (operation.needsPages && !isCSR && counts[b] > getRoom(b))
      return false;
  }
  return true;
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
  for (int64_t b = 0; b < batch; ++b) {
    uint64_t tokens = uint64_t(counts[b]) + getNew(b);
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

/// Whether the integers of an array may be read, and are not in [least, end).
bool CheckedCall::areOutside(const ArrayView &view, bool areColumns,
                             int64_t least, int64_t end) const {
  return !function.isOnGPU() &&
         !areBetween(view, total, areColumns, least, end);
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
           !areOutside(view, false, any, numPages * pageSize);
  case ParameterKind::Positions:
    return view.getTensor().rank > 0 &&
           checkRows(view, view.getTensor().rank - 1) && rope >= 0 &&
           getView(rope).getTensor().rank == 2 &&
           !areOutside(view, true, 0, getView(rope).getSize(0));
  case ParameterKind::Lengths:
    return checkLengths(view);
  case ParameterKind::RegionArray:
    return !view.isEmpty() && view.getTensor().dtype.code != 1;
  case ParameterKind::UnsignedArray:
    return !view.isEmpty() && view.getTensor().dtype.code != 0;
  case ParameterKind::Workspace:
    return parameter.argument == workspace ||
           (view.getTensor().rank == 1 &&
            view.getSize(0) >= countWorkspaceBytes());
  default:
    return true;
  }
}

bool CheckedCall::checkLengths(const ArrayView &view) {
  if (!view.isVectorOfInts() || view.getSize(0) != batch)
    return false;
  for (int64_t b = 0; b < batch && !function.isOnGPU(); ++b) {
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
