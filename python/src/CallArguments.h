//===- CallArguments.h - The arguments of checked calls ---------*- C++ -*-===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KVCACHE_PYTHON_CALLARGUMENTS_H
#define KVCACHE_PYTHON_CALLARGUMENTS_H

#include "CheckedCalls.h"

#include <vector>

namespace mlir::kvcache::python {

/// The arguments of a call of an operation. Functions that read them return
/// false, without an exception, for a call that is not surely right.
class CallArguments {
public:
  explicit CallArguments(const CheckedOperation &operation)
      : operation(operation), function(*operation.function) {}

  bool readInputs(PyObject *inputs, PyObject *layer);
  bool readParameters(PyObject *const *values);
  /// Finds the workspace of the stream, where none is given.
  bool findWorkspace(int64_t bytes);
  CallResult call() { return function.call(arguments); }

  /// Numbers of arguments; negative for none.
  struct Places {
    int lengths = -1, table = -1, tableIndex = -1, rope = -1;
    /// The optional rows, and the workspace, that are not given.
    int missingRows = -1, newWorkspace = -1;
  };
  const Places &getPlaces() const { return places; }
  /// Whether the inputs have lengths and a table.
  bool hasStep() const { return hasTable; }
  const ArrayView &getView(int argument) const {
    return arguments.views[argument];
  }
  /// The copies of offsets and totals in host memory, or None.
  PyObject *getHostOffsets() const { return hostOffsets; }
  PyObject *getHostTotals() const { return hostTotals; }

private:
  bool readOperands(PyObject *operands);
  bool readParameter(const Parameter &parameter, PyObject *value);
  bool readScale(const Parameter &parameter, PyObject *value);
  /// Places the scales that are given as numbers on the GPU.
  bool placeScales();
  /// Gets the stream of the frameworks, or None. Null if it can't say.
  nanobind::object getStream() const;
  /// Reads an array that Python has made; null for an error.
  bool readMade(int argument, PyObject *array);

  ArrayView &getView(int argument) { return arguments.views[argument]; }

  const CheckedOperation &operation;
  const NativeFunction &function;
  NativeArguments arguments;
  Places places;
  bool hasTable = false;
  /// The elements of scales that are given as numbers.
  static constexpr int64_t kMostScales = 512;
  float scales[kMostScales];
  int64_t numScales = 0;
  /// Likewise on a GPU: a number for all elements of an argument.
  struct EqualScale {
    int argument;
    float scale;
    int64_t size;
  };
  std::vector<EqualScale> equalScales;
  /// The arrays that Python gives for numbers and for no workspace.
  std::vector<nanobind::object> made;
  /// The inputs own these.
  PyObject *hostOffsets = Py_None, *hostTotals = Py_None;
};

} // namespace mlir::kvcache::python

#endif // KVCACHE_PYTHON_CALLARGUMENTS_H
